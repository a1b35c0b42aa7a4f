// Numbers from gamepads and from the clock on the wall, and what cameras and microphones show and hear. Each is asked for
// only if the patch reads it.

// The name of a number that others send, `sent:[source, arguments…]@output`, taken apart.
export function sentName(name) {
    const end = name.lastIndexOf("]@") + 1, [source, ...args] = JSON.parse(name.slice("sent:".length, end));
    return { name, source, args, output: name.slice(end + 1) };
}

const isCount = (output) => output.endsWith("@count");

// The buttons and axes of a gamepad, in the order of the standard mapping of browsers.
const BUTTONS = ["a", "b", "x", "y", "lb", "rb", "lt", "rt", "back", "start", "ls", "rs", "up", "down", "left", "right",
                 "guide"];
const AXES = ["lx", "ly", "rx", "ry"];

export class Pads {
    constructor(names) {
        this._names = names;
        this._held = new Set();
    }

    frame(inputs) {
        const pads = navigator.getGamepads?.() ?? [];
        for (const { name, args, output } of this._names) {
            const pad = pads[args[0]], button = output.replace(/@count$/, ""), place = `${args[0]} ${button}`;
            if (!isCount(output)) {
                inputs.set(name, value(pad, output));
                continue;
            }
            const isHeld = value(pad, button) > 0.5;
            if (isHeld && !this._held.has(place)) inputs.set(name, inputs.get(name) + 1);
            this._held[isHeld ? "add" : "delete"](place);
        }
    }
}

function value(pad, output) {
    if (!pad) return 0;
    const axis = AXES.indexOf(output), button = BUTTONS.indexOf(output);
    return axis >= 0 ? pad.axes[axis] ?? 0 : pad.buttons[button]?.value ?? 0;
}

// The time of day: the local seconds at time 0 since midnight, and the day of that midnight since 1 January 2000.
export class WallClock {
    constructor(names, time) {
        this._names = names;
        this._time = time;
        const now = new Date();
        this._midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate());
        this._day = Math.round((Date.UTC(now.getFullYear(), now.getMonth(), now.getDate()) - Date.UTC(2000, 0, 1)) / 864e5);
        this._start = 0;
    }

    frame(inputs) {
        // As clocks show it, also across the change to summer time.
        const now = new Date(), zones = this._midnight.getTimezoneOffset() - now.getTimezoneOffset();
        const start = (now - this._midnight) / 1000 + 60 * zones - this._time();
        if (Math.abs(start - this._start) > 0.05) this._start = start;
        for (const { name, output } of this._names) inputs.set(name, output === "day" ? this._day : this._start);
    }
}

// The cameras that a patch shows, by the names of their pictures. The browser asks the visitor.
export class Cameras {
    static async open(records, say) {
        const found = new Map();
        for (const { name, number } of records) {
            try {
                found.set(name, await cameraOf(number));
            } catch (problem) {
                say(`There is no camera: ${problem.message}.`);
            }
        }
        return new Cameras(found);
    }

    constructor(films) {
        this._films = films;
    }

    frame(pictures) {
        for (const [name, film] of this._films) {
            if (film.videoWidth > 0) pictures.show(name, film, film.videoWidth, film.videoHeight);
        }
    }
}

async function cameraOf(number) {
    const devices = await navigator.mediaDevices.enumerateDevices();
    const wanted = devices.filter(({ kind }) => kind === "videoinput")[number];
    const video = wanted?.deviceId ? { deviceId: wanted.deviceId } : true;
    const film = document.createElement("video");
    film.muted = true;
    film.srcObject = await navigator.mediaDevices.getUserMedia({ video });
    await film.play();
    return film;
}

// What the microphone hears, as it is.
export function microphone() {
    const plain = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
    return navigator.mediaDevices.getUserMedia({ audio: plain });
}
