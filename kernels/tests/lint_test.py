"""Every rule of the PTX lint fires, and only where it should: python kernels/tests/lint_test.py"""

import contextlib
import io
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import compile
import lint

REFUSED = {
    "fused": ["fma.rn.f32 \t%f4, %f1, %f2, %f3;", "@%p1 fma.rn.f64 %fd1, %fd2, %fd3, %fd4;", "mad.rn.f32 %f1, %f2, %f3, %f4;",
              "fma.rn.f16x2 %r1, %r2, %r3, %r4;"],
    "contractable": ["add.f32 %f1, %f2, %f3;", "mul.f64 %fd1, %fd2, %fd3;", "sub.f32 %f1, %f2, %f3;"],
    "flush": ["add.rn.ftz.f32 %f1, %f2, %f3;", "setp.lt.ftz.f32 %p1, %f1, %f2;"],
    "approximate": ["ex2.approx.f32 %f1, %f2;", "$L__BB0_2: rcp.approx.f32 %f1, %f2;", "div.full.f32 %f1, %f2, %f3;"],
    "rounding": ["add.rz.f32 %f1, %f2, %f3;", "cvt.rp.f32.f64 %f1, %fd1;", "div.rm.f64 %fd1, %fd2, %fd3;"],
    "atomic": ["atom.global.add.f32 %f1, [%rd1], %f2;", "red.shared.add.f64 [%rd1], %fd1;",
               "@!%p2 red.global.add.noftz.f16x2 [%rd1], %r1;"],
    "tensor": ["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f2};",
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, 1, 1, 1, 0, 0;"],
    "local": [".local .align 8 .b8 \t__local_depot0[48];"],
}

ALLOWED = [
    "add.rn.f32 %f1, %f2, %f3;",
    "div.rn.f32 %f1, %f2, %f3;",
    "sqrt.rn.f64 %fd1, %fd2;",
    "cvt.rzi.s32.f32 %r1, %f1;",
    "cvt.rn.f32.s64 %f1, %rd1;",
    "mad.lo.s32 %r1, %r2, %r3, %r4;",
    "mul.wide.u32 %rd1, %r1, 4;",
    "add.s64 %rd1, %rd2, %rd3;",
    "atom.global.add.u64 %rd1, [%rd2], %rd3;",
    "red.shared.max.u32 [%r1], %r2;",
    "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r1}, {%r2}, {%r3}, {%r4};",
    "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%r1, %r2, %r3, %r4}, %rd1, %rd2, 1;",
    "wgmma.fence.sync.aligned;",
    "fence.proxy.async.shared::cta;",
    "ld.local.u32 %r1, [%rd1]; // reported where the depot is declared",
    "// add.f32 in a comment",
    "max.f32 %f1, %f2, %f3;",
]


class Lint(unittest.TestCase):
    def test_every_rule_fires(self):
        self.assertEqual(set(REFUSED), {name for name, _, _ in lint.RULES})
        for name, lines in REFUSED.items():
            for line in lines:
                with self.subTest(line=line):
                    self.assertIn(name, [rule for rule, _ in lint.findings(line)])

    def test_exact_instructions_pass(self):
        for line in ALLOWED:
            with self.subTest(line=line):
                self.assertEqual(lint.findings(line), [])

    def test_findings_name_the_line(self):
        (rule, finding), = lint.findings("\n\nadd.rz.f32 %f1, %f2, %f3;")
        self.assertEqual(rule, "rounding")
        self.assertTrue(finding.startswith("3: rounding: "), finding)

    def test_reports_do_not_refuse(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertTrue(lint.check({"a": REFUSED["local"][0]}))
            self.assertFalse(lint.check({"b": REFUSED["flush"][0]}))
        self.assertIn("a:1: local", said.getvalue())

    def test_entries_are_found(self):
        text = ".visible .entry first(\n.param .u64 p\n)\n.visible .func helper()\n.visible .entry second_f32()"
        self.assertEqual(compile.entries(text), ["first", "second_f32"])


if __name__ == "__main__":
    unittest.main()
