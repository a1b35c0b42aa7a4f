// The tempo of a performance, which taps of a key and clocks of MIDI change. The meaning is that of weft/runtime/hands/tempo.py: the beat
// never jumps, and runs a little faster or slower for a while to meet theirs.

// The share of the tempo by which it does so, and the least seconds for it.
const GLIDE = 0.05;
const SHORTEST = 1;

// After this many seconds without a tap, the next tap is a first one. And the least seconds between two movements of one
// finger.
const AGAIN = 2;
const BOUNCE = 0.12;

// The most intervals that are averaged, and the fewest. And the bounds of an interval, relative to the mean before it.
const MOST_INTERVALS = 8;
const FEWEST_INTERVALS = 2;
const SHORTER = 0.55;
const LONGER = 1.7;

// Differences that are ignored: seconds of the beat, and of that of a clock; and a share of its tempo.
const SAME_TIME = 0.001;
const SAME_CLOCK = 0.004;
const SAME_TEMPO = 5e-4;

// The range of a tempo.
const LOWEST = 0.1;
const HIGHEST = 10000;

// A change is announced once it is this close, in seconds, beyond what the sound has computed ahead.
const SOON = 0.1;

// The beats as a function of time: `then` of them have passed at `start`, before which the tempo is `before`, and `bpm`
// after it.
class Beats {
    constructor(then, start, before, bpm) {
        Object.assign(this, { then, start, before, bpm });
    }

    at(seconds) {
        return this.then + ((seconds - this.start) * this.bpmAt(seconds)) / 60;
    }

    bpmAt(seconds) {
        return seconds < this.start ? this.before : this.bpm;
    }

    changed(start, bpm) {
        return new Beats(this.at(start), start, this.bpmAt(start), bpm);
    }
}

// What is left of a number after the nearest multiple of another one.
function remainder(value, every) {
    const share = value / every, whole = Math.round(share);
    return value - every * (Math.abs(share - Math.trunc(share)) === 0.5 && whole % 2 ? whole - 1 : whole);
}

export class Tempo {
    constructor(bpm) {
        this.bpm = bpm;
        this.restart();
    }

    // Counts from 0, like the time. The tempo stays, and series of taps end.
    restart() {
        this.beats = new Beats(0, 0, this.bpm, this.bpm);
        this._goal = null;
        this._planned = [];
        this._taps = [];
    }

    // The four numbers by the names that kernels read.
    get inputs() {
        const { then, start, before, bpm } = this.beats;
        return { beats_then: then, beats_start: start, beats_bpm_before: before, beats_bpm: bpm };
    }

    // Notes a beat that was tapped at this time. From the third tap on, the tempo is the mean of the last taps, and the
    // nearest beat moves to the last one. Gives the tempo; null if there is none yet.
    tap(moment) {
        const taps = this._taps, last = taps.length - 1;
        const passed = taps.length ? moment - taps[last] : Infinity;
        if (passed >= 0 && passed < BOUNCE) return null;
        if (!(passed >= 0 && passed <= AGAIN)) taps.length = 0;
        else if (taps.length > 1) {
            const share = passed / ((taps[last] - taps[0]) / last);
            if (!(share > SHORTER && share < LONGER)) taps.splice(0, last);
        }
        taps.push(moment);
        if (taps.length > MOST_INTERVALS + 1) taps.shift();
        const count = taps.length - 1;
        if (count < FEWEST_INTERVALS) return null;
        this.bpm = (60 * count) / (moment - taps[0]);
        this._goal = { bpm: this.bpm, moment, beat: Math.floor(this.beats.at(moment) + 0.5) };
        return this.bpm;
    }

    // Follows a clock, which has this tempo, and this beat at this time. The own beat moves to the nearest one that agrees
    // with it up to multiples of `every` beats. May be called often.
    follow(bpm, beat, moment, every = 1) {
        bpm = Math.min(Math.max(bpm, LOWEST), HIGHEST);
        const own = this.beats.at(moment), apart = remainder(beat - own, every);
        const isTempo = Math.abs(bpm / this.bpm - 1) < SAME_TEMPO;
        if (isTempo && (Math.abs(apart) * 60 / bpm < SAME_CLOCK || this._goal !== null || this._planned.length)) return;
        this.bpm = bpm;
        this._goal = { bpm, moment, beat: own + apart };
    }

    // Plans changes, once a frame. Sounds are known `ahead` seconds from `now` on. Gives whether the beats have changed.
    advance(now, ahead) {
        const { beats } = this, earliest = now + ahead;
        // Only the last change is known, so the next one has to wait until it has taken place.
        if (now < beats.start) return false;
        if (this._goal !== null) this._plan(this._goal, beats, earliest);
        this._goal = null;
        if (this._planned.length === 0 || this._planned[0][0] > earliest + SOON) return false;
        const [start, bpm] = this._planned.shift();
        this.beats = beats.changed(Math.max(start, earliest), bpm);
        return true;
    }

    _plan({ bpm, moment, beat }, beats, earliest) {
        const missing = beat + ((earliest - moment) * bpm) / 60 - beats.at(earliest);
        const lasts = Math.max(SHORTEST, (Math.abs(missing) * 60) / (bpm * GLIDE));
        this._planned = [];
        if ((Math.abs(missing) * 60) / bpm > SAME_TIME) {
            this._planned.push([earliest, bpm + (60 * missing) / lasts], [earliest + lasts, bpm]);
        } else if (bpm !== beats.bpm) {
            this._planned.push([earliest, bpm]);
        }
    }
}
