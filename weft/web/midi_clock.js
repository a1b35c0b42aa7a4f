// The clock of a MIDI device, which the tempo of a page follows. The meaning is that of weft/runtime/hands/midi.py: from
// 24 ticks a beat to a tempo and a beat, by the line that fits the last ticks best.

import { listen } from "./midi_ports.js";

const TICKS = 24;
const SIXTEENTH = TICKS / 4;

// The most ticks of a line, and the fewest that make one.
const MOST = 4 * TICKS;
const FEWEST = TICKS / 2;

// Seconds between two ticks after which a clock begins again, and without any after which another device may lead.
const GAP = 0.25;
const SILENT = 2;

// When the tempo counts as changed, and when one is corrected: standard errors, shares, and ticks.
const CHANGED_ERRORS = 5, CHANGED = 0.02, LASTING = TICKS / 2;
const OFF_ERRORS = 3, OFF = 2e-4;

// Beats of a measure, up to which the beat of a page moves.
const MEASURE = 4;

const POSITION = 0xf2, CLOCK = 0xf8, START = 0xfa, CONTINUE = 0xfb, STOP = 0xfc;

// Follows the clock of one device.
export class ClockDecoder {
    constructor() {
        this._moments = [];
        this._ticks = 0;
        this._isKnown = false;
        this._way = this._lasting = this._rate = 0;
    }

    // Takes a message of a clock, which came at a moment in seconds.
    take([status, low = 0, high = 0], moment) {
        if (status === CLOCK) {
            const passed = moment - this._moments[this._moments.length - 1];
            if (!(passed >= 0 && passed <= GAP)) this._moments = [];
            this._moments.push(moment);
            if (this._moments.length > MOST) this._moments.shift();
            this._ticks++;
            this._lasting++;
        } else if (status === START || status === POSITION) {
            // Beat 0 is at the next tick after a start.
            this._ticks = status === START ? 0 : (low | (high << 7)) * SIXTEENTH;
            this._isKnown = true;
        }
    }

    // The tempo, and the beat at the last tick; null before there were enough.
    get reading() {
        const line = this._fitted();
        if (line === null) return null;
        if (Math.abs(line.slope - this._rate) > Math.max(OFF_ERRORS * line.error, OFF * line.slope)) this._rate = line.slope;
        const moment = this._moments[this._moments.length - 1], beat = (this._ticks - 1 + line.last) / TICKS;
        return { bpm: (60 * this._rate) / TICKS, beat, moment, isKnown: this._isKnown };
    }

    // The line through the last ticks. If their tempo has changed, it is that of the last beat.
    _fitted() {
        const moments = this._moments;
        if (moments.length < FEWEST) return null;
        const line = lineThrough(moments);
        if (line === null || moments.length < 2 * TICKS) return line;
        const recent = lineThrough(moments.slice(-TICKS));
        if (recent === null) return line;
        const apart = recent.slope - line.slope;
        const way = Math.abs(apart) <= Math.max(CHANGED_ERRORS * recent.error, CHANGED * line.slope) ? 0 : Math.sign(apart);
        if (way !== this._way) [this._way, this._lasting] = [way, 0];
        if (way === 0 || this._lasting < LASTING) return line;
        this._moments = moments.slice(-TICKS);
        this._way = 0;
        return recent;
    }
}

// The line through the numbers of ticks over their moments: ticks a second, the standard error of that, and the value at
// the last moment, in ticks after the last one. Null if all ticks came at once.
function lineThrough(moments) {
    const count = moments.length, end = moments[count - 1], times = moments.map((moment) => moment - end);
    const sum = (value) => times.reduce((total, time, at) => total + value(time, at + 1 - count), 0);
    const meanTime = sum((time) => time) / count, meanTick = (1 - count) / 2;
    const spread = sum((time) => (time - meanTime) ** 2);
    if (spread === 0) return null;
    const slope = sum((time, tick) => (time - meanTime) * (tick - meanTick)) / spread, last = meanTick - slope * meanTime;
    const rest = sum((time, tick) => (tick - last - slope * time) ** 2);
    return { slope, error: Math.sqrt(rest / (count - 2) / spread), last };
}

// Leads a tempo by the first device that sends a clock, and by another one once that is silent.
export class MidiClock {
    // `tell` gets a sentence about the device.
    constructor(tempo, tell) {
        this._tempo = tempo;
        this._tell = tell;
        this._leader = null;
        this._decoder = null;
        this._isNew = false;
    }

    // Listens to all devices. The browser asks the visitor. Raises what it says where there is no MIDI.
    open() {
        return listen((device, bytes, moment) => this.take(device, bytes, moment));
    }

    // Takes a message of a device, which came at a moment in seconds.
    take(device, bytes, moment) {
        if (![POSITION, CLOCK, START, CONTINUE, STOP].includes(bytes[0])) return;
        const leader = this._leader;
        if (leader === null || (leader.device !== device && moment - leader.moment > SILENT)) {
            this._decoder = new ClockDecoder();
            this._tell(`the tempo follows ${device}`);
        } else if (leader.device !== device) return;
        this._leader = { device, moment };
        this._decoder.take(bytes, moment);
        this._isNew = true;
    }

    // Leads the tempo, once a frame. The time of the performance is `ahead` of the moments of messages.
    lead(ahead) {
        if (!this._isNew) return;
        this._isNew = false;
        const reading = this._decoder.reading;
        if (reading === null) return;
        const { bpm, beat, isKnown } = reading, moment = reading.moment + ahead;
        if (isKnown) this._tempo.follow(bpm, beat, moment, MEASURE);
        else this._tempo.follow(bpm, this._tempo.beats.at(moment), moment);
    }
}
