// Where a page begins: it reads its description and its address, and plays or checks itself.

import { Card } from "./card.js";
import { Inputs } from "./inputs.js";
import { mediaOf } from "./media.js";
import { unpacked } from "./packed.js";
import { openFilms } from "./offline.js";
import { Panel } from "./panel.js";
import { Player, Tick } from "./player.js";
import { Screen, Words } from "./screen.js";
import { drawStill } from "./still.js";
import { Watch } from "./watch.js";

const asked = new URLSearchParams(location.search);
const words = new Words(document.getElementById("words"), document.getElementById("note"));
let description = null;
const stage = document.getElementById("stage");

// A performance: the player, the sound, and the clock that both follow.
class Performance {
    // Without a `tempo`, nothing reads the beat.
    constructor(media, tempo) {
        this.media = media;
        this.tempo = tempo;
        this.begin = Math.max(0, Number(asked.get("t")) || 0);
        this.inputs = new Inputs(description.inputs, description.uniforms);
        this.screen = new Screen(stage);
        this.sound = this.cameras = this.midi = this.clock = null;
        this._from = performance.now();
        this._last = null;
        this._number = Math.floor(this.begin * description.settings.fps);
        this.player = this._player();
        this._shown = this.player?.shown ?? [];
        for (const canvas of this.screen.open(this._shown)) this.inputs.follow(canvas);
        this.inputs.followKeys();
        this._told = [];
        this.watch = new Watch(description, this.player, (text) => this._tell(text), this.inputs.read.has("key@r") ? "" : "R clears it.");
    }

    // Reports what is wrong with what is played. An embedded page is only a picture.
    _tell(text) {
        if (asked.has("embed")) return console.warn(text);
        this._told.push(text);
        words.say(text);
    }

    // Begins again, with nothing remembered.
    restart() {
        this._from = performance.now();
        this._last = null;
        this._number = Math.floor(this.begin * description.settings.fps);
        this.tempo?.restart();
        this.player?.clear();
        this.sound?.restart();
        this.watch.forget();
        words.drop(this._told.splice(0));
    }

    _player() {
        if (description.subgraphs.length === 0) return null;
        const draws = description.subgraphs.some((record) => record.is === "picture");
        const card = draws ? new Card(this.screen.canvas, description.vertex) : null;
        const player = new Player(description, card, {
            heard: (name) => (seconds) => this.sound?.recent.getter(name)(seconds) ?? 0,
        });
        if (card !== null) card.onlost = () => words.say("The graphics card is gone: the page has to be loaded again.");
        for (const [name, picture] of this.media.pictures) player.pictures.give(name, picture);
        return player;
    }

    // The time of the performance in seconds. The sound leads it.
    get time() {
        return this.sound?.leads ? this.sound.time : this.begin + (performance.now() - this._from) / 1000;
    }

    // The numbers from which kernels compute the beat.
    get beats() {
        return this.tempo?.inputs ?? {};
    }

    start() {
        this._from = performance.now();
        const frame = () => {
            if (this._frame()) requestAnimationFrame(frame);
        };
        requestAnimationFrame(frame);
    }

    _frame() {
        const { fps } = description.settings, time = this.time;
        // A display that is faster than the patch shows some frames twice.
        if (this._last !== null && time < this._last + 0.9 / fps) return true;
        try {
            this.tick(time, this._last === null ? 1 / fps : time - this._last);
            this._last = time;
        } catch (problem) {
            words.say(`The picture stands still: ${problem.message}.`);
            console.error(problem);
            return false;
        }
        return true;
    }

    tick(time, step) {
        this.inputs.frame();
        this.clock?.lead(time - performance.now() / 1000);
        this.tempo?.advance(time, this.sound?.ahead ?? 0);
        for (const [name, value] of Object.entries(this.beats)) this.inputs.set(name, value);
        const { player, inputs, media } = this;
        if (player !== null) {
            const tick = new Tick({
                number: this._number++, time, step, width: player.width, height: player.height,
                inputs: (name) => inputs.values.get(name) ?? media.lengths.get(name) ?? 0,
            });
            for (const [name, heard] of this.sound?.heard ?? []) player.pictures.give(name, heard.picture());
            this.cameras?.frame(player.pictures);
            player.run(tick);
            this._tick = tick;
            if (this._shown.length) this.screen.show(player.card, this._shown);
            this.watch.look(time);
            if (description.feeds) player.feeds(tick).forEach((value, name) => inputs.set(name, value));
        }
        const tick = this._tick;
        this.sound?.set(this._controls(), tick && player ? [...player.views(tick)] : []);
    }

    // The numbers that the sound reads, as pairs of name and value.
    _controls() {
        this._names ??= [...new Set([...description.sounds.flatMap(({ controls }) => controls), ...Object.keys(this.beats)])];
        return this._names.filter((name) => this.inputs.values.has(name)).map((name) => [name, this.inputs.get(name)]);
    }

    async openFilms() {
        await openFilms(description, this.player, (text) => words.say(text));
    }

    // Follows the clock of a MIDI device.
    async followClock() {
        const { MidiClock } = await import(window.weft.address("midi_clock.js"));
        this.clock = new MidiClock(this.tempo, (text) => words.note(text));
        try {
            await this.clock.open();
        } catch (problem) {
            words.say(`There is no MIDI: ${problem.message}.`);
        }
    }

    // Connects the devices that the patch reads. Those that are missing or refused are reported; the rest plays.
    async connect() {
        const sent = description.uniforms.filter((name) => name.startsWith("sent:")), { cameras } = description;
        const hears = description.uniforms.some((name) => name.startsWith("mic:"));
        if (sent.length === 0 && cameras.length === 0 && !hears) return;
        const devices = await import(window.weft.address("devices.js"));
        const names = sent.map(devices.sentName), of = (test) => names.filter(({ source }) => test(source));
        const pads = of((source) => source === "pad"), clock = of((source) => source === "clock");
        const midi = of((source) => source.startsWith("midi_"));
        const connect = (device) => this.inputs.connect((inputs) => device.frame(inputs));
        if (pads.length) connect(new devices.Pads(pads));
        if (clock.length) connect(new devices.WallClock(clock, () => this.time));
        if (midi.length) await this._connectMidi(midi, connect);
        if (cameras.length) this.cameras = await devices.Cameras.open(cameras, (text) => words.say(text));
        if (hears && this.sound !== null) {
            try {
                this.sound.hear(await devices.microphone());
            } catch (problem) {
                words.say(`The microphone is silent: ${problem.message}.`);
            }
        }
    }

    async _connectMidi(names, connect) {
        const { Midi } = await import(window.weft.address("midi.js"));
        this.midi = new Midi(names, () => this.time);
        connect(this.midi);
        try {
            await this.midi.open();
        } catch (problem) {
            words.say(`There is no MIDI: ${problem.message}.`);
        }
    }

    async openSound() {
        const { Sound } = await import(window.weft.address("sound.js"));
        this.sound = await Sound.open(description, this.media, () => this.time, () => this.beats);
        this.sound.onfault = ({ lost, stopped, time }) => {
            lost.forEach((key) => this.watch.lost(key, time));
            stopped.forEach((name) => this.watch.stopped(name));
        };
    }
}

// Plays without a gesture where the browser allows it, and shows a button where it does not.
async function begin(performance) {
    performance.start();
    if (description.sounds.length === 0) return;
    try {
        await performance.openSound();
        if (!(await performance.sound.begin())) beginByHand(performance.sound).catch(silent);
    } catch (problem) {
        silent(problem);
    }
}

async function beginByHand(sound) {
    do await pressed();
    while (!(await sound.begin()));
}

function silent(problem) {
    words.say(`There is no sound: ${problem.message}.`);
}

// Waits until the visitor presses the button, or anywhere in an embedded page, which has none.
function pressed() {
    const button = document.getElementById("begin");
    button.hidden = asked.has("embed");
    return new Promise((resolve) => {
        const end = () => {
            button.hidden = true;
            removeEventListener("pointerdown", embedded);
            resolve();
        };
        const embedded = () => asked.has("embed") && end();
        addEventListener("pointerdown", embedded);
        button.onclick = end;
    });
}

async function hands(performance) {
    const { parameters } = description, knobs = parameters.length ? await knobsOf(performance) : null;
    const panel = new Panel(document.getElementById("panel"), parameters, performance.inputs, (parameter, forgets) => {
        learn(knobs, parameter, forgets);
    });
    if (knobs !== null) knobs.onchange = () => panel.show();
    if (!asked.has("embed")) panel.toggle();
    const source = document.getElementById("source");
    source.textContent = description.source;
    addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("form")) return;
        if (performance.inputs.read.has(`key@${event.key}`)) return;
        if (event.key === "f") performance.screen.fullscreen();
        if (event.key === "r") performance.restart();
        if (event.key === "t" && performance.tempo !== null) {
            const bpm = performance.tempo.tap(performance.time);
            if (bpm !== null) words.note(`${bpm.toFixed(1)} BPM`);
        }
        if (event.key === "p") panel.toggle();
        if (event.key === "u") source.hidden = !source.hidden;
    });
}

// Whether the picture stands still until a visitor has it move.
function isStill() {
    if (!description.subgraphs.some(({ is, shown }) => is === "picture" && shown)) return false;
    if (asked.has("still")) return true;
    return !asked.has("play") && matchMedia("(prefers-reduced-motion: reduce)").matches;
}

// Shows a picture that does not move. It ends when the visitor has it move, which `?still` does not offer.
async function still(media) {
    const screen = new Screen(stage);
    let wanted = true;
    const drawn = drawStill(description, media, screen, Number(asked.get("t") ?? description.moment) || 0, () => wanted);
    if (asked.has("still")) {
        await drawn;
        document.documentElement.dataset.still = "drawn";
        return new Promise(() => {});
    }
    drawn.catch((problem) => words.say(`The picture is not drawn: ${problem.message}.`));
    await pressed();
    wanted = false;
}

// The knobs of MIDI devices that move parameters. The browser is asked for devices if there is one.
async function knobsOf(performance) {
    const { Knobs } = await import(window.weft.address("knobs.js"));
    const knobs = (performance.knobs = new Knobs(description.parameters, performance.inputs, () => window.localStorage));
    if (knobs.isUsed) openKnobs(knobs);
    return knobs;
}

async function openKnobs(knobs) {
    try {
        await knobs.open();
    } catch (problem) {
        words.say(`There is no MIDI: ${problem.message}.`);
    }
}

// Binds the first input of a parameter to the next knob that is turned; asked again, the next one, and after the last one
// none.
function learn(knobs, { inputs }, forgets) {
    if (forgets) {
        knobs.forget(inputs);
        words.note(`no knob moves ${inputs.join(", ")}`);
        return;
    }
    const next = inputs[inputs.indexOf(knobs.learning) + 1] ?? null;
    knobs.learn(next);
    words.note(next === null ? "no knob is waited for" : `turn a knob for ${next}`);
    if (next !== null) openKnobs(knobs);
}

async function checked() {
    if (description.check === null) {
        document.title = `check failed: ${description.unchecked}`;
        return;
    }
    const { check } = await import(window.weft.address("check.js"));
    await check(description);
}

async function tempo() {
    if (!description.beats) return null;
    const { Tempo } = await import(window.weft.address("tempo.js"));
    return new Tempo(description.settings.bpm);
}

async function main() {
    document.documentElement.classList.toggle("embedded", asked.has("embed"));
    description = JSON.parse(new TextDecoder().decode(await unpacked(document.getElementById("program").textContent)));
    window.weft.description = description;
    if (asked.has("check")) return checked();
    const media = await mediaOf(description);
    media.problems.forEach((problem) => words.say(problem));
    if (!asked.has("embed")) description.notes.forEach((note) => words.say(note));
    if (isStill()) await still(media);
    const performance = new Performance(media, await tempo());
    window.weft.performance = performance;
    await hands(performance);
    await performance.openFilms();
    await begin(performance);
    await performance.connect();
    if (asked.has("midi-clock") && performance.tempo !== null) await performance.followClock();
}

main().catch((problem) => {
    words.say(`The page cannot play: ${problem.message}.`);
    console.error(problem);
});
