#!/usr/bin/env bash
# The core links into Cortex-M0 images without a heap and without core::fmt, computes the committed digests there, and takes
# no more of the board than firmware/snapshots says. TERCET_OVERWRITE=1 renews that, and the table in firmware/README.md.
. .ci/lib.sh

board=microbit
readme=firmware/README.md

for program in nothing online_8x6 online_16x64 kmeans_8x6 quantized_8x6; do
    printed=target/ci/footprint-$program.txt
    firmware "$board" "$program" --budget >"$printed"
    while read -r line; do
        grep -qxF "$line" core/conformance.txt || {
            echo "$program: $line is not in core/conformance.txt"
            exit 1
        }
    done < <(grep -v '^#' "$printed")
done

# The README's table is the one that the committed figures make.
table=target/ci/footprint-table.md
runner "$(board_target "$board")" table >"$table"
if [[ ${TERCET_OVERWRITE:-} ]]; then
    sed -i -e "/<!-- figures -->/,/<!-- end of figures -->/ {
        /<!-- figures -->/ r $table
        /<!-- /! d
    }" "$readme"
fi
diff <(sed -n '/<!-- figures -->/,/<!-- end of figures -->/ { /<!-- /! p }' "$readme") "$table" || {
    echo "the table in $readme is not that of firmware/snapshots; TERCET_OVERWRITE=1 .ci/test footprint renews it"
    exit 1
}
note "5 images: no panic, no heap, no core::fmt"
