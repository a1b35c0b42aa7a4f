// What analyses hear, as pictures that kernels sample: a row for each hop of the sound, and a plane for each output.

import { Analyser } from "./analyses.js";

// The rows of a picture, and how many after the newest repeat it.
export const ROWS = 512;
const AHEAD = 128;

// The picture of the rows that were heard. The newest is kept for a while; with `later`, everything was heard that many
// hops later than it was.
export class HeardRows {
    constructor(record, rate) {
        this.record = record;
        this.width = record.columns;
        this.height = ROWS + 2;
        this.newest = -1;
        this._rows = Array(ROWS).fill(silence(record, rate));
        this._values = new Float32Array(4 * this.width * this.height);
    }

    add(number, row) {
        this._rows[number % ROWS] = this._pixels(row);
        this.newest = number;
    }

    // A row of pixels: bands in columns, with low, middle and high in the other planes; else a value in each plane.
    _pixels(row) {
        return pixels(this.record, row);
    }

    picture(later = 0) {
        const { _values: values, width, newest } = this, place = (n) => (((n + later) % ROWS) + ROWS) % ROWS;
        const put = (at, row) => values.set(row, 4 * width * at);
        for (let n = 0; n < ROWS; n++) put(1 + place(n), this._rows[n]);
        if (newest >= 0) {
            for (let k = 1; k <= AHEAD; k++) put(1 + place(newest + k), this._rows[newest % ROWS]);
        }
        values.copyWithin(0, 4 * width * ROWS, 4 * width * (ROWS + 1));
        values.copyWithin(4 * width * (ROWS + 1), 4 * width, 8 * width);
        return { values, width, height: this.height };
    }
}

function pixels({ analysis, columns }, row) {
    const found = new Float32Array(4 * columns);
    if (analysis === "fft") {
        for (let band = 0; band < columns; band++) found.set([row[3 + band], row[0], row[1], row[2]], 4 * band);
    } else {
        found.set(row);
    }
    return found;
}

// What is heard in silence.
function silence(record, rate) {
    const analyser = new Analyser(record, rate);
    for (let n = 1; n < record.hop; n++) analyser.take(0);
    return pixels(record, analyser.take(0));
}

// Hears one strand of the sound, from a whole hop on.
export class Listener {
    constructor(record, rate, first) {
        this.record = record;
        this.heard = new HeardRows(record, rate);
        this._analyser = new Analyser(record, rate);
        this._start = Math.ceil(first / record.hop) * record.hop;
        // A sample cannot know what is heard in its own block.
        this.later = Math.ceil(512 / record.hop) + 1;
        this.fresh = [];
    }

    // Takes samples, the first of which has the number `first`. New rows are in `fresh`, each with its number.
    hear(first, samples) {
        for (let n = 0; n < samples.length; n++) {
            if (first + n < this._start) continue;
            const row = this._analyser.take(samples[n]);
            if (row === null) continue;
            const number = (first + n + 1) / this.record.hop - 1;
            this.heard.add(number, row);
            this.fresh.push([number, row]);
        }
    }
}
