// Prints the conformance table that a WebAssembly build of core makes: node .ci/wasm.mjs conformance_wasm.wasm
import { readFileSync } from "node:fs";

const text = new TextDecoder();
const { instance } = await WebAssembly.instantiate(readFileSync(process.argv[2]), {
  host: {
    line: (start, length) => console.log(text.decode(new Uint8Array(instance.exports.memory.buffer, start, length))),
  },
});
const differ = instance.exports.table();
if (differ > 0) {
  console.error(`${differ} digests differ from the committed table`);
  process.exit(1);
}
