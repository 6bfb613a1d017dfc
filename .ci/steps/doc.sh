#!/usr/bin/env bash
# The documentation builds without a warning: no broken link, no missing page. All features but `candle`, whose 130 crates take longer than
# all the rest.
. .ci/lib.sh

export RUSTDOCFLAGS="-D warnings"
core=(conformance critical-section defmt dsp mve portable-atomic std)
features=("${core[@]/#/tercet-core/}" tercet-host/ndarray)
cargo doc --locked --workspace --no-deps --features "$(IFS=,; echo "${features[*]}")"
