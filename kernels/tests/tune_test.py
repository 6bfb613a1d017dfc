"""kernels/tune on the emulated device: every case is right, and what is wrong is named: python kernels/tests/tune_test.py"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

KERNELS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(KERNELS))

import compile

CXX = os.environ.get("CXX", "g++")
SHIPPED = KERNELS / "ptx"
SMALL = ["--size", "32768"]


class Tune(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        built = subprocess.run([KERNELS / "emulator" / "build"], stdout=subprocess.PIPE, text=True, check=True)
        cls.driver = pathlib.Path(built.stdout.strip()).parent
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.program = cls.folder / "tune"
        flags = ["-std=c++17", "-O1", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror"]
        subprocess.run([CXX, *flags, "-x", "c++", KERNELS / "tune" / "main.cu", "-o", cls.program, "-ldl"], check=True)

    def run_it(self, *arguments, emulator=""):
        """Runs it: the status, the lines of the table, what it said beside it."""
        table = self.folder / "table.json"
        table.unlink(missing_ok=True)
        environment = {**os.environ, "LD_LIBRARY_PATH": str(self.driver), "TERCET_EMULATOR": emulator}
        done = subprocess.run([self.program, "--json", table, *arguments], capture_output=True, text=True, env=environment)
        results = json.loads(table.read_text())["results"] if table.is_file() else []
        self.assertTrue(all(line["case"] in done.stdout and line["right"] in done.stdout for line in results), done.stdout)
        return done.returncode, results, done.stderr

    def variant(self, name, module, change=lambda text: text):
        """A folder with one module."""
        path = self.folder / name / module
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(change((SHIPPED / module).read_text()))
        return self.folder / name

    def test_every_case_is_right(self):
        status, results, said = self.run_it("--once", "--size", "65536", SHIPPED)
        self.assertEqual([line for line in results if line["right"] != "yes"], [])
        self.assertEqual((status, said), (0, ""))
        self.assertEqual(len(results), 26)

    def test_times_are_beside_those_of_a_copy(self):
        other = self.variant("other", "75/search_int8.ptx")
        words = [word for only in ["one query", "quantize_apply", "stream", "launch and"] for word in ["--only", only]]
        status, results, said = self.run_it(*SMALL, *words, SHIPPED, other)
        self.assertEqual((status, said), (0, ""))
        self.assertEqual([(line["case"], line["variant"]) for line in results],
                         [("copy", "-"), ("to the device, 1 stream", "-"), ("to the device, 4 streams", "-"), ("back, 1 stream", "-"),
                          ("back, 4 streams", "-"), ("launch and read 32 bytes", "ptx"), ("ternary codes", "ptx"),
                          ("search, one query", "ptx"), ("search, one query", "other")])
        for line in results:
            self.assertEqual(line["right"], "yes")
            self.assertGreater(line["us"], 0)
            self.assertEqual(line["of_copy"] > 0, line["gb_s"] > 0)

    def test_wrong_results_are_not_timed(self):
        status, results, _ = self.run_it(*SMALL, "--only", "assign wgmma", "--only", "ternary codes", SHIPPED, emulator="fragments=0")
        self.assertEqual(status, 1)
        self.assertEqual([(line["case"], line["right"].split(":")[0]) for line in results],
                         [("copy", "yes"), ("ternary codes", "yes"), ("k-means, assign wgmma", "WRONG")])
        self.assertEqual(results[2]["us"], 0)

    def test_failed_launches_are_named_and_the_rest_runs(self):
        status, results, said = self.run_it("--once", *SMALL, "--only", "decode", SHIPPED, emulator="fail=launch:1")
        self.assertEqual(status, 1)
        self.assertEqual([line["right"] for line in results], ["FAILED: cuLaunchKernel: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701)", "yes"])
        self.assertEqual(said, "")

    def test_nothing_runs_on_a_lost_device(self):
        status, results, said = self.run_it("--once", *SMALL, "--only", "decode", SHIPPED, emulator="tell=0,fail=lost:1")
        self.assertEqual(status, 1)
        self.assertEqual([line["right"] for line in results], ["FAILED: cuStreamSynchronize: CUDA_ERROR_LAUNCH_FAILED (719)"])
        self.assertIn("the device is lost since decode tq2_0 of ptx", said)

    def test_other_parameters_are_refused(self):
        change = lambda text: text.replace("\t.param .u32 stats_f32_param_6,\n", "\t.param .u64 stats_f32_param_6,\n")
        status, results, _ = self.run_it("--once", *SMALL, "--only", "stats_f32", SHIPPED, self.variant("wide", "75/stats.ptx", change))
        self.assertEqual(status, 1)
        self.assertEqual([(line["variant"], line["right"]) for line in results],
                         [("ptx", "yes"), ("wide", "FAILED: stats_f32 takes parameters of 8 8 8 8 8 8 8 8 bytes, and is given 8 8 8 8 8 8 4 8")])

    def test_modules_that_are_not_there_or_no_ptx_are_named(self):
        broken = self.variant("broken", "75/stats.ptx", lambda text: text.replace(".version", ".vision", 1))
        status, results, _ = self.run_it("--once", *SMALL, "--only", "stats_f32", "--only", "histogram", broken)
        self.assertEqual(status, 1)
        self.assertEqual([line["right"] for line in results],
                         ["FAILED: cuModuleLoadData: CUDA_ERROR_INVALID_IMAGE (200)", f"FAILED: there is no {broken}/75/histogram_ordered.ptx"])

    def test_older_devices_run_what_they_can(self):
        status, results, said = self.run_it("--once", *SMALL, "--only", "k-means", SHIPPED, emulator="capability=8.6")
        self.assertEqual(status, 0)
        self.assertEqual(len(results), 5)
        self.assertEqual(said, "tune: k-means, assign wgmma is not run: it needs compute capability 9.0 and no other\n")

    def test_bad_arguments_are_said(self):
        for arguments, words in [(["--only", "nonsense", SHIPPED], "--only nonsense"), (["--size", "1000", SHIPPED], "--size 1000"),
                                 (["--fast", SHIPPED], "--fast"), ([], "no folder"), ([SHIPPED, "--only"], "--only needs")]:
            with self.subTest(arguments=arguments):
                status, _, said = self.run_it(*arguments, emulator="devices=0")
                self.assertEqual(status, 2)
                self.assertIn(words, said)
        self.assertEqual(self.run_it("--help")[0], 0)

    def test_copies_are_nothing_for_a_profiler(self):
        self.assertEqual(self.run_it("--once", "--only", "copy", SHIPPED), (1, [], "tune: no case was run\n"))

    def test_no_device_is_a_sentence(self):
        self.assertEqual(self.run_it(SHIPPED, emulator="devices=0"), (1, [], "tune: cuInit: CUDA_ERROR_NO_DEVICE (100)\n"))


class Variants(unittest.TestCase):
    def test_macros_are_those_of_sources(self):
        compile.check_defines(["TERCET_STATS_BLOCKS=3", "TERCET_DECODE_STRIPES=8"])
        for define in ["TERCET_STATS_BLOCK=3", "STRIPES=8", "TERCET_STATS_BLOCKS"]:
            with self.subTest(define=define), self.assertRaisesRegex(SystemExit, define):
                compile.check_defines([define])


if __name__ == "__main__":
    unittest.main()
