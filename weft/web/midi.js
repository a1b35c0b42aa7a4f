// What others send by MIDI: controllers, and the notes that are held. The meaning is that of
// weft/runtime/hands/midi_messages.py.

import { Controllers, listen } from "./midi_ports.js";

// The age of what has never come, when the performance begins.
const NEVER = 100;

const CONTROLS = { midi_bend: "bend", midi_pressure: "pressure", midi_program: "program" };
const EXPRESSION = 11, SUSTAIN = 64, SOUND_OFF = 120, RESET = 121, NOTES_OFF = 123;

export class Midi {
    // `names` are the numbers that a patch reads, taken apart; `time` gives the time of the performance, and
    // `moment` the seconds by which messages are apart.
    constructor(names, time, moment = () => performance.now() / 1000) {
        this._time = time;
        this._controllers = new Controllers(moment);
        this._values = new Map();
        this._moves = new Map();
        this._count = 0;
        this.held = [];
        this._ending = new Set();
        this._pedals = new Set();
        this._sustained = new Set();
        this._serial = 0;
        this._struck = [];
        this._names = names;
        this._voices = new Map();
        for (const each of names.filter(({ source }) => source === "midi_note")) {
            const [voice, channel, device, order] = each.args, key = JSON.stringify([channel, device, order]);
            if (!this._voices.has(key)) this._voices.set(key, new Voices(order, channel, device));
            this._voices.get(key).grow(voice + 1);
        }
    }

    // Listens to all devices. The browser asks the visitor. Raises what it says where there is no MIDI.
    open() {
        return listen(
            (device, bytes) => this.take(device, bytes),
            (gone) => this._end((note) => note.device === gone),
        );
    }

    // Takes a message of a device.
    take(device, [status, first = 0, second = 0]) {
        if (status >= 0xf0) return;
        const channel = (status & 15) + 1;
        switch (status >> 4) {
            case 8: return this._off(device, channel, first);
            case 9: return second === 0 ? this._off(device, channel, first) : this._on(device, channel, first, second);
            case 10: return this._moveTo(device, channel, "pressure", second / 127, second > 0);
            case 11: return this._controller(device, channel, first, second);
            case 12: return this._moveTo(device, channel, "program", first, true);
            case 13: return this._moveTo(device, channel, "pressure", first / 127, first > 0);
            case 14: {
                const bend = (first | (second << 7)) - 8192;
                return this._moveTo(device, channel, "bend", bend / (bend < 0 ? 8192 : 8191), bend !== 0);
            }
        }
    }

    _moveTo(device, channel, control, value, isMove) {
        this._set(device, channel, control, value);
        if (isMove) this._move(device, channel, control);
    }

    _controller(device, channel, number, value) {
        const here = `${device} ${channel}`;
        if (value > 0) this._move(device, channel, number);
        if (number >= SOUND_OFF) {
            if (number === SOUND_OFF || number === RESET || number >= NOTES_OFF) {
                this._pedals.delete(here);
                this._end((note) => note.device === device && note.channel === channel);
            }
            if (number === RESET) this._reset(device, channel);
            return;
        }
        for (const [moved, position] of this._controllers.moved(device, channel, number, value)) {
            this._set(device, channel, moved, position);
        }
        if (number !== SUSTAIN) return;
        if (value >= 64) this._pedals.add(here);
        else {
            this._pedals.delete(here);
            this._end((note) => note.device === device && note.channel === channel && this._sustained.has(note));
        }
    }

    _reset(device, channel) {
        for (const control of ["bend", "pressure", 1, 64, 65, 66, 67, EXPRESSION]) {
            const isKnown = this._values.has(JSON.stringify([device, channel, control]));
            if (isKnown) this._set(device, channel, control, control === EXPRESSION ? 1 : 0);
        }
    }

    _set(device, channel, control, value) {
        const key = JSON.stringify([device, channel, control]);
        this._values.set(key, { key, device, channel, control, value, count: ++this._count });
    }

    // Counts a message that did not set a controller to 0, or chose a program.
    _move(device, channel, control) {
        const key = JSON.stringify([device, channel, control]), from = { key, device, channel, control };
        this._moves.set(key, { ...from, times: (this._moves.get(key)?.times ?? 0) + 1 });
    }

    _on(device, channel, key, velocity) {
        // Struck again, it becomes the newest.
        this.held = this.held.filter((note) => note !== this._find(device, channel, key));
        const note = { serial: ++this._serial, device, channel, key, velocity: velocity / 127, began: this._time() };
        this.held.push(note);
        this._struck.push([note, [...this.held]]);
    }

    _find(device, channel, key) {
        return this.held.find((each) => each.device === device && each.channel === channel && each.key === key);
    }

    _off(device, channel, key) {
        const note = this._find(device, channel, key);
        if (note === undefined) return;
        if (this._pedals.has(`${device} ${channel}`)) this._sustained.add(note);
        else this._end((each) => each === note);
    }

    // Ends notes. One that no frame has shown yet is held up to the next one.
    _end(isMeant) {
        for (const note of this.held.filter(isMeant)) {
            this._sustained.delete(note);
            if (this._struck.some(([struck]) => struck === note)) this._ending.add(note);
            else this.held = this.held.filter((each) => each !== note);
        }
    }

    // Writes the numbers for the next frame.
    frame(inputs) {
        for (const voices of this._voices.values()) {
            const held = this.held.filter((note) => voices.means(note));
            const struck = this._struck.filter(([note]) => voices.means(note))
                .map(([, then]) => then.filter((note) => voices.means(note)));
            voices.frame(held, struck);
        }
        for (const each of this._names) inputs.set(each.name, this._value(each));
        this.held = this.held.filter((note) => !this._ending.has(note));
        this._ending.clear();
        this._struck = [];
    }

    _value({ source, args, output }) {
        if (source === "midi_note") {
            const [voice, channel, device, order] = args;
            return this._voices.get(JSON.stringify([channel, device, order])).value(voice, output);
        }
        const first = source === "midi_cc" ? 1 : 0, [channel, device] = args.slice(first);
        const control = source === "midi_cc" ? args[0] : CONTROLS[source];
        const isRead = (each) => each.control === control && isMeant(each, channel, device);
        if (output === "count") {
            return [...this._moves.values()].filter(isRead).reduce((sum, { times }) => sum + times, 0);
        }
        const last = [...this._values.values()].filter(isRead);
        return last.reduce((one, other) => (other.count > one.count ? other : one), { count: 0, value: 0 }).value;
    }
}

function isMeant(from, channel, device) {
    return (channel === 0 || channel === from.channel) && from.device.toLowerCase().includes(device.toLowerCase());
}

// Gives held notes to voices, by an order.
class Voices {
    constructor(order, channel, device) {
        Object.assign(this, { order, channel, device });
        this.shown = [];
        this.hits = [];
        this._slots = [];
        this._given = [];
        this._last = 0;
    }

    grow(count) {
        while (this.shown.length < count) {
            this.shown.push({ note: null, gate: false });
            this.hits.push(0);
            this._slots.push(null);
            this._given.push(null);
        }
    }

    means(note) {
        return isMeant(note, this.channel, this.device);
    }

    frame(held, struck) {
        for (const then of struck) {
            const newest = then[then.length - 1], chosen = this._chosen(then);
            this.hits.forEach((_, k) => (this.hits[k] += Number(chosen[k] === newest)));
        }
        const serials = new Set(held.map((note) => note.serial)), chosen = this._chosen(held);
        this.shown = this.shown.map((voice, k) => {
            const note = chosen[k] ?? null, before = voice.note;
            if (note === null) return { note: before, gate: false };
            // A voice whose note ended and began again between two frames rests for one, else none would show it.
            const isStruck = before !== null && note.serial > before.serial
                && (this.order === "steady" || !serials.has(before.serial));
            return { note, gate: !(voice.gate && isStruck) };
        });
    }

    value(voice, output) {
        const { note, gate } = this.shown[voice];
        switch (output) {
            case "gate": return Number(gate);
            case "count": return this.hits[voice];
        }
        if (note === null) return 0;
        return { note: note.key, velocity: note.velocity, age: note.began + NEVER }[output];
    }

    _chosen(held) {
        const by = {
            newest: (a, b) => b.serial - a.serial, oldest: (a, b) => a.serial - b.serial,
            lowest: (a, b) => a.key - b.key || b.serial - a.serial,
            highest: (a, b) => b.key - a.key || b.serial - a.serial,
        }[this.order];
        return by === undefined ? this._steady(held) : [...held].sort(by);
    }

    // A new note takes the voice that last had its key if that is free, else the one that has been free for longest,
    // else that of the oldest note.
    _steady(held) {
        this._slots = this._slots.map((note) => held.find((each) => each.serial === note?.serial) ?? null);
        for (const note of [...held].sort((a, b) => a.serial - b.serial)) {
            if (note.serial <= this._last) continue;
            this._last = note.serial;
            const rank = (k) => {
                const current = this._slots[k], before = this._given[k];
                const isOwn = before !== null && before.key === note.key && before.channel === note.channel
                    && before.device === note.device;
                return [Number(current !== null), Number(!isOwn), (current ?? before)?.serial ?? -1];
            };
            const less = (a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
            const chosen = [...this._slots.keys()].sort((a, b) => less(rank(a), rank(b)))[0];
            this._slots[chosen] = this._given[chosen] = note;
        }
        return this._slots;
    }
}
