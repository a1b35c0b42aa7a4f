// Kernels: modules of WebAssembly that compute numbers and sounds.
//
// All modules of a page share one memory. Each has a block of arguments in it, whose offsets its layout says: the host
// writes numbers and addresses there, and calls the functions `constants`, `frame`, `columns`, `rows` and `elements`.

// Height and width of a strand of a picture as the sound sees it.
export const VIEW = [128, 256];

const PAGE = 65536;
const ALIGNMENT = 16;

// The bytes of a text in base64.
export function bytesOf(text) {
    if (typeof atob === "function") return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    // A worklet has no `atob`.
    const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const bytes = new Uint8Array(Math.floor((text.replace(/=+$/, "").length * 3) / 4));
    let bits = 0, held = 0, at = 0;
    for (const letter of text) {
        const value = letters.indexOf(letter);
        if (value < 0) break;
        bits = ((bits << 6) | value) & 0xffffff;
        held += 6;
        if (held >= 8) {
            held -= 8;
            bytes[at++] = (bits >> held) & 255;
        }
    }
    return bytes;
}

// The memory that modules share, from which parts are taken and never given back.
export class Arena {
    constructor() {
        this.memory = new WebAssembly.Memory({ initial: 16 });
        this._end = ALIGNMENT;
    }

    // The address of this many bytes of zeros.
    take(bytes) {
        const start = Math.ceil(this._end / ALIGNMENT) * ALIGNMENT;
        this._end = start + bytes;
        const missing = this._end - this.memory.buffer.byteLength;
        if (missing > 0) this.memory.grow(Math.ceil(missing / PAGE));
        return start;
    }

    // Views last until the memory grows.
    doubles(address, count) {
        return new Float64Array(this.memory.buffer, address, count);
    }

    singles(address, count) {
        return new Float32Array(this.memory.buffer, address, count);
    }

    // The view of all of it for single numbers.
    get view() {
        if (this._view === undefined || this._view.buffer !== this.memory.buffer) {
            this._view = new DataView(this.memory.buffer);
        }
        return this._view;
    }
}

// What a subgraph remembers that is numbers: a ring [depth + 1, planes] for each slot. Its images are on the card, and
// count the same ticks.
export class State {
    constructor(arena, slots) {
        this.arena = arena;
        this.ticks = 0;
        this.slots = new Map(slots.map((slot) => [slot.key, slot]));
        this.rings = new Map();
        for (const slot of slots) {
            if (!slot.image) this.rings.set(slot.key, arena.take(8 * (slot.depth + 1) * slot.planes));
        }
    }

    // The cell of a ring that was written this many ticks ago; 0 is the one that this tick writes.
    cell(key, ago = 0) {
        const cells = this.slots.get(key).depth + 1;
        return (((this.ticks - ago) % cells) + cells) % cells;
    }

    // The value of a slot this many ticks ago.
    past(key, plane, ago) {
        const at = this.cell(key, ago) * this.slots.get(key).planes + plane;
        return this.arena.view.getFloat64(this.rings.get(key) + 8 * at, true);
    }

    // All numbers of a slot.
    numbers(key) {
        const slot = this.slots.get(key);
        return this.arena.doubles(this.rings.get(key), (slot.depth + 1) * slot.planes);
    }

    advance() {
        this.ticks++;
    }

    // The keys of the slots of numbers whose newest value is not finite.
    get lost() {
        return [...this.rings.keys()].filter((key) => {
            const { depth, planes } = this.slots.get(key);
            if (depth === 0) return false;
            return Array.from({ length: planes }, (_, plane) => this.past(key, plane, 1)).some((each) => !Number.isFinite(each));
        });
    }

    // Forgets everything.
    clear() {
        this.ticks = 0;
        for (const key of this.rings.keys()) this.numbers(key).fill(0);
    }
}

// One module with its block of arguments.
export class Kernel {
    // `strands` gives the function that reads a strand of another subgraph, by its name.
    constructor(arena, layout, module, strands) {
        this.arena = arena;
        this.layout = layout;
        const [from, name] = layout.memory;
        const imports = { [from]: { [name]: arena.memory }, strand: {} };
        layout.strands.forEach((strand, at) => (imports.strand[at] = strands(strand.name)));
        this.functions = new WebAssembly.Instance(module, imports).exports;
        this.block = arena.take(layout.size);
        this._outputs = { address: 0, room: 0 };
        this._lines = new Map();
        this._knowsConstants = false;
        this._locals = new Map(layout.locals.map((local) => [local.number, local]));
    }

    // Writes what is the same in a whole launch, and computes what follows from it: `uniform` and `coord` give numbers
    // by name. `between` says that the last tick has ended: it sees every slot one tick further back.
    begin(uniform, coord, state, between = false) {
        const view = this.arena.view;
        let changed = !this._knowsConstants;
        for (const number of this.layout.numbers) {
            const value = number.source === "uniform" ? uniform(number.name) : coord(number.name);
            const at = this.block + number.offset;
            changed ||= number.constant && view.getFloat64(at, true) !== value;
            view.setFloat64(at, value, true);
        }
        for (const ring of this.layout.rings) {
            // Images are lent by their owners.
            const address = state.rings.get(ring.key);
            if (address !== undefined) view.setUint32(this.block + ring.offset, address, true);
            view.setUint32(this.block + ring.head, state.cell(ring.key, between ? 1 : 0), true);
        }
        if (changed) this.functions.constants?.(this.block);
        this._knowsConstants = true;
        this.functions.frame?.(this.block);
    }

    // A local that `begin` has computed, by its number.
    local(number) {
        const local = this._locals.get(number), at = this.block + local.offset;
        return local.type === "float" ? this.arena.view.getFloat64(at, true) : this.arena.view.getUint32(at, true);
    }

    // Lends a picture or a sound to the kernel: its floats at an address.
    lend(name, address, width, height) {
        const place = this.layout.sampled.find((each) => each.name === name);
        if (place === undefined) return;
        [address, width, height].forEach((word, at) => {
            this.arena.view.setUint32(this.block + place.offset + 4 * at, word, true);
        });
    }

    // Lends the ring of an image to the kernel.
    lendImage(key, address, columns, rows) {
        const ring = this.layout.rings.find((each) => each.key === key);
        const view = this.arena.view;
        view.setUint32(this.block + ring.offset, address, true);
        view.setUint32(this.block + ring.size, columns, true);
        view.setUint32(this.block + ring.size + 4, rows, true);
    }

    // Computes all outputs over a row of `count` elements after `begin`: `line` gives the coordinate of a name for
    // each element. Gives the doubles [outputs, count], until the next call.
    elements(count, line = () => []) {
        const layout = this.layout, words = layout.fixed;
        const address = this._room(8 * count * layout.outputs);
        for (const each of layout.lines) this._fill(each, count, line(each.name));
        const view = this.arena.view;
        view.setUint32(this.block + words.out, address, true);
        view.setUint32(this.block + words.stride, count, true);
        view.setUint32(this.block + words.width, count, true);
        view.setUint32(this.block + words.height, 1, true);
        this.functions.columns?.(this.block);
        this.functions.rows?.(this.block);
        this.functions.elements(this.block);
        return this.arena.doubles(address, count * layout.outputs);
    }

    // Writes the time of the first of the samples that `elements` computes.
    at(first, rate) {
        const view = this.arena.view, words = this.layout.fixed;
        view.setFloat64(this.block + words.first, first, true);
        view.setFloat64(this.block + words.rate, rate, true);
        view.setFloat64(this.block + words.origin, 0, true);
    }

    // Whether a loop has met its limit of steps since the last question.
    get stopped() {
        const at = this.block + this.layout.fixed.stopped, found = this.arena.view.getUint32(at, true) !== 0;
        this.arena.view.setUint32(at, 0, true);
        return found;
    }

    _room(bytes) {
        if (this._outputs.room < bytes) this._outputs = { address: this.arena.take(bytes), room: bytes };
        return this._outputs.address;
    }

    _fill(place, count, values) {
        let held = this._lines.get(place.name);
        if (held === undefined || held.room < count) {
            held = { address: this.arena.take(8 * (count + 8)), room: count, all: null };
            this._lines.set(place.name, held);
        }
        // A line whose numbers are all the same usually stays as it is.
        if (typeof values === "number") {
            if (!Object.is(held.all, values)) this.arena.doubles(held.address, held.room).fill(values);
            held.all = values;
        } else {
            this.arena.doubles(held.address, count).set(values.length === count ? values : values.subarray(0, count));
            held.all = null;
        }
        this.arena.view.setUint32(this.block + place.offset, held.address, true);
    }
}

// The modules of a page, each compiled once.
export class Modules {
    constructor(records) {
        this.records = records;
        this.compiled = records.map((record) => new WebAssembly.Module(bytesOf(record.code)));
    }

    // A kernel of the module of this number, in a memory.
    kernel(number, arena, strands) {
        return new Kernel(arena, this.records[number], this.compiled[number], strands);
    }
}
