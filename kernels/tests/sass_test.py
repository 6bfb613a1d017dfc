"""What machine code is refused, and what is not: python kernels/tests/sass_test.py"""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import sass

# Of quantize_ternary_f16, as ptxas 13.0 made it: an H200 wrote to where the upper half of the address was 0.
SEEN = """
.text.quantize:
        /*0000*/                   ULDC.64 UR4, c[0x0][0x240] ;
.L_x_1:
        /*0010*/                   BSSY B0, `(.L_x_4) ;
        /*0020*/               @P0 BRA `(.L_x_2) ;
        /*0030*/                   LDG.E.128 R8, desc[UR32][R16.64] ;
        /*0040*/                   BRA `(.L_x_3) ;
.L_x_2:
        /*0050*/              @!P0 BREAK B0 ;
        /*0060*/              @!P0 BRA `(.L_x_5) ;
.L_x_3:
        /*0070*/                   BSYNC B0 ;
.L_x_4:
        /*0080*/                   IADD3 R8, P1, R3, UR4, RZ ;
        /*0090*/                   IADD3.X R9, R2, UR5, RZ, P1, !PT ;
        /*00a0*/                   STG.E.64 desc[UR32][R8.64], R20 ;
        /*00b0*/                   BRA `(.L_x_1) ;
.L_x_5:
        /*00c0*/                   UMOV UR24, URZ ;
        /*00d0*/                   UMOV UR5, URZ ;
        /*00e0*/                   BSYNC B1 ;
        /*00f0*/                   EXIT ;
"""


class Exits(unittest.TestCase):
    def test_a_register_that_the_loop_reads_is_not_to_be_written(self):
        self.assertEqual(sass.findings(SEEN), ["quantize: 0060: UMOV UR5, URZ"])

    def test_the_second_of_a_pair_counts(self):
        pair = SEEN.replace("UMOV UR5, URZ", "ULDC.64 UR4, c[0x0][0x210]")
        self.assertEqual(sass.findings(pair), ["quantize: 0060: ULDC.64 UR4, c[0x0][0x210]"])
        descriptor = SEEN.replace("UMOV UR5, URZ", "@UP0 UMOV UR33, URZ")
        self.assertEqual(sass.findings(descriptor), ["quantize: 0060: @UP0 UMOV UR33, URZ"])

    def test_others_may_be_written_and_all_behind_a_meeting(self):
        for text in [SEEN.replace("UMOV UR5, URZ", "UMOV UR6, URZ"), SEEN.replace("UMOV UR24, URZ", "WARPSYNC.ALL"),
                     SEEN.replace("@!P0 BREAK B0", "NOP")]:
            self.assertEqual(sass.findings(text), [])


if __name__ == "__main__":
    unittest.main()
