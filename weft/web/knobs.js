// The knobs of MIDI devices that move parameters. A parameter learns its knob from the next one that is turned. The
// meaning is that of weft/runtime/hands/knobs.py: a knob takes hold of a parameter when it passes its value.

import { Controllers, listen } from "./midi_ports.js";

// A step of a knob with 7 bits. A value at most this far away counts as met.
const STEP = 1 / 127;

// Messages to a whole channel begin here.
const MODES = 120;

const CONTROLLER = 0xb;

export class Knobs {
    // `store` gives what keeps the knobs of a page, such as `localStorage`, or raises that there is none; `moment` gives the seconds by which messages are apart.
    constructor(parameters, inputs, store, moment = () => performance.now() / 1000) {
        Object.assign(this, { parameters, inputs, store });
        this.learning = null;
        this.onchange = () => {};
        this._controllers = new Controllers(moment);
        this._positions = new Map();
        this._held = new Map();
        this._listens = null;
        this._knobs = new Map(Object.entries(this._stored()));
    }

    // A page may be refused a store, and others may have written to it.
    _stored() {
        try {
            const found = JSON.parse(this.store().getItem(place()) ?? "{}");
            return typeof found === "object" && found !== null ? found : {};
        } catch {
            return {};
        }
    }

    _keep() {
        try {
            this.store().setItem(place(), JSON.stringify(Object.fromEntries(this._knobs)));
        } catch {
            // They last as long as the page.
        }
    }

    get isUsed() {
        return this._knobs.size > 0;
    }

    // Listens to the devices. Raises what the browser says where there is no MIDI.
    open() {
        this._listens ??= listen((device, bytes) => this.take(device, bytes));
        return this._listens;
    }

    // Binds an input of a parameter to the next knob that is turned; null ends the wait for one.
    learn(name) {
        this.learning = name;
    }

    forget(names) {
        for (const name of names) this._knobs.delete(name);
        if (names.includes(this.learning)) this.learning = null;
        this._keep();
    }

    // Takes a message of a device. Gives the input that has just been bound.
    take(device, [status, number = 0, value = 0]) {
        if (status >> 4 !== CONTROLLER || number >= MODES) return null;
        const channel = (status & 15) + 1, moved = this._controllers.moved(device, channel, number, value);
        const [cc, position] = moved[moved.length - 1], knob = JSON.stringify([device, channel, cc]), learnt = this.learning;
        if (learnt !== null) {
            this.learning = null;
            this._knobs.set(learnt, knob);
            this._keep();
        }
        const before = this._positions.get(knob);
        this._positions.set(knob, position);
        for (const [name, its] of this._knobs) if (its === knob) this._move(name, before, position, name === learnt);
        return learnt;
    }

    _move(name, before, position, isLearnt) {
        const parameter = this.parameters.find(({ inputs }) => inputs.includes(name));
        if (parameter === undefined) return;
        const { kind, low, high } = parameter;
        // A button counts as pressed once, even if a pad trembles.
        if (kind === "button" && before !== undefined && before >= 0.5 === position >= 0.5) return;
        if (!isLearnt && !this._takesHold(name, parameter, before, position)) return;
        const value = fitted(parameter, low + position * (high - low));
        if (kind === "button" && value) this.inputs.count(name);
        this.inputs.set(name, value);
        this._held.set(name, value);
        this.onchange(name);
    }

    _takesHold(name, { kind, low, high }, before, position) {
        const current = this.inputs.get(name);
        if (["toggle", "menu", "button"].includes(kind) || this._held.get(name) === current || high === low) return true;
        const there = (current - low) / (high - low), from = before ?? position;
        return Math.min(position, from) - STEP <= there && there <= Math.max(position, from) + STEP;
    }
}

// Where a page keeps its knobs: pages on one disk may share a store.
function place() {
    return `weft knobs ${location.pathname}`;
}

function fitted({ kind, low, high }, value) {
    const inside = Math.min(Math.max(value, low), high);
    return ["toggle", "menu", "button"].includes(kind) ? Math.floor(inside + 0.5) : inside;
}
