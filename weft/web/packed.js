// What a page holds as bytes: deflated, in base64.

import { bytesOf } from "./kernels.js";

export async function unpacked(text) {
    if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old to unpack it");
    const stream = new Blob([bytesOf(text.trim())]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Whole numbers in rows of `columns`, from their second differences from row to row: see `weft/web/packed.py`.
export async function rowsOf(text, columns, width) {
    const bytes = await unpacked(text), count = bytes.length / width, rows = new Int32Array(count), unused = 32 - 8 * width;
    for (let at = 0; at < count; at++) {
        let folded = 0;
        for (let plane = 0; plane < width; plane++) folded |= bytes[plane * count + at] << (8 * plane);
        const difference = (folded >>> 1) ^ -(folded & 1);
        const last = at < columns ? 0 : rows[at - columns], before = at < 2 * columns ? 0 : rows[at - 2 * columns];
        // All is computed modulo the range of the numbers.
        rows[at] = ((difference + 2 * last - before) << unused) >> unused;
    }
    return rows;
}
