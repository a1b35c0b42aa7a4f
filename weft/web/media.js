// The media of the page: pictures and sounds that travel inside it, decoded.

import { bytesOf } from "./kernels.js";
import { rowsOf, unpacked } from "./packed.js";

// The pictures and sounds of a description, by their names: `pictures` for `Pictures.give`, `sounds` as samples
// [samples, 2], and the `lengths` of these, which kernels read as numbers.
export async function mediaOf(description) {
    const pictures = new Map(), sounds = new Map(), lengths = new Map(), problems = [];
    for (const [name, medium] of Object.entries(description.media)) {
        try {
            if (medium.kind === "sound") {
                const samples = await decodedSound(medium);
                samples.over = medium.length;
                sounds.set(name, samples);
                lengths.set(name, medium.length);
                pictures.set(name, { values: samples, width: samples.length / 2, height: 1, sides: 2 });
            } else if (medium.kind === "floats") {
                pictures.set(name, await floats(medium));
            } else if (medium.kind === "picture") {
                pictures.set(name, await decodedPicture(medium));
            }
        } catch (problem) {
            problems.push(`${medium.title} cannot be shown: ${problem.message}`);
        }
    }
    return { pictures, sounds, lengths, problems };
}

// A picture that weft has made, such as letters: only the channels that are not 0.
async function floats({ data, width, height, channels, scale, middle }) {
    const levels = await rowsOf(data, channels.length, 2), values = new Float32Array(4 * width * height);
    for (let at = 0; at < width * height; at++) {
        channels.forEach((channel, n) => (values[4 * at + channel] = (levels[at * channels.length + n] + middle) * scale));
    }
    return { values, width, height };
}

// Samples [samples, 2], from whole numbers of some bytes or from floats, for one side or for both.
async function decodedSound({ data, width, sides }) {
    const given = width === 4 ? new Float32Array((await unpacked(data)).buffer) : await rowsOf(data, sides, width);
    const scale = width === 4 ? 1 : 2 ** (1 - 8 * width);
    return Float32Array.from({ length: (2 * given.length) / sides }, (_, at) => given[sides === 2 ? at : at >> 1] * scale);
}

// The pixels of a picture file. Where it has an alpha, colours are multiplied by it, and by no less than `hidden`.
async function decodedPicture({ data, type, weighted, hidden, levels }) {
    const blob = new Blob([bytesOf(data)], { type });
    const bitmap = await createImageBitmap(blob, { premultiplyAlpha: "none", colorSpaceConversion: "none" });
    // On a canvas that is no element, WebKitGTK draws nothing.
    const canvas = document.createElement("canvas"), gl = canvas.getContext("webgl2");
    // A canvas of two dimensions would multiply colours by alpha and lose some of their bits.
    const texture = gl.createTexture(), target = gl.createFramebuffer();
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, gl.RGBA, gl.UNSIGNED_BYTE, bitmap);
    gl.bindFramebuffer(gl.FRAMEBUFFER, target);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, texture, 0);
    const pixels = new Uint8Array(4 * bitmap.width * bitmap.height);
    gl.readPixels(0, 0, bitmap.width, bitmap.height, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
    gl.getExtension("WEBGL_lose_context")?.loseContext();
    const values = Float32Array.from(pixels, (value) => Math.fround(value / 255));
    if (weighted) {
        for (let at = 0; at < values.length; at += 4) {
            const weight = Math.max(values[at + 3], hidden);
            for (let channel = 0; channel < 3; channel++) values[at + channel] *= weight;
        }
    }
    const whole = { values, width: bitmap.width, height: bitmap.height };
    return levels === undefined ? whole : smaller(whole, levels);
}

// The smaller levels of a picture as one: each the mean of four pixels of the one before, with a border of a pixel that
// repeats its edge. `levels` has the sizes: the `whole` picture, continued by its edge, and for each level its top row.
function smaller({ values, width, height }, { whole, together, tops }) {
    let [columns, rows] = whole, level = new Float32Array(4 * columns * rows);
    for (let y = 0; y < rows; y++) {
        for (let x = 0; x < columns; x++) {
            const from = 4 * (Math.min(y, height - 1) * width + Math.min(x, width - 1));
            level.set(values.subarray(from, from + 4), 4 * (y * columns + x));
        }
    }
    const found = new Float32Array(4 * together[0] * together[1]);
    for (const top of tops) {
        const half = new Float32Array(columns * rows), across = columns / 2, down = rows / 2;
        for (let at = 0; at < half.length; at++) {
            const channel = at % 4, x = Math.floor(at / 4) % across, y = Math.floor(at / 4 / across);
            const from = 4 * (2 * y * columns + 2 * x) + channel;
            half[at] = (level[from] + level[from + 4] + level[from + 4 * columns] + level[from + 4 * columns + 4]) / 4;
        }
        [level, columns, rows] = [half, across, down];
        for (let y = -1; y <= rows; y++) {
            for (let x = -1; x <= columns; x++) {
                const inside = Math.min(Math.max(y, 0), rows - 1) * columns + Math.min(Math.max(x, 0), columns - 1);
                found.set(level.subarray(4 * inside, 4 * inside + 4), 4 * ((top + y) * together[0] + x + 1));
            }
        }
    }
    return { values: found, width: together[0], height: together[1] };
}
