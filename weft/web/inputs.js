// What reaches a patch by hand: mouse, touch, keys and parameters, as numbers by the names that kernels read.

// The names of keys by their places on the keyboard (`KeyboardEvent.code`).
const NAMES = {
    Space: "space", Enter: "enter", NumpadEnter: "enter", Escape: "escape", Tab: "tab", Backspace: "backspace",
    Insert: "insert", Delete: "delete", ArrowRight: "right", ArrowLeft: "left", ArrowDown: "down", ArrowUp: "up",
    PageUp: "pageup", PageDown: "pagedown", Home: "home", End: "end", ShiftLeft: "shift", ShiftRight: "shift",
    ControlLeft: "control", ControlRight: "control", AltLeft: "alt", AltRight: "alt", Quote: "apostrophe",
    Comma: "comma", Minus: "minus", Period: "period", Slash: "slash", Semicolon: "semicolon", Equal: "equal",
    BracketLeft: "leftbracket", Backslash: "backslash", BracketRight: "rightbracket", Backquote: "grave",
};

export function keyName(code) {
    const plain = /^(?:Key([A-Z])|Digit(\d)|(F\d{1,2}))$/.exec(code);
    return plain ? (plain[1] ?? plain[2] ?? plain[3]).toLowerCase() : NAMES[code];
}

const BUTTONS = ["left", "middle", "right"];

export class Inputs {
    // `start` has the initial values of parameters and of the beats, `read` the names that the program reads.
    constructor(start, read) {
        this.values = new Map(Object.entries(start));
        this.read = new Set(read);
        this.values.set("mouse@x", 0.5).set("mouse@y", 0.5).set("mouse@wheel", 0);
        this._held = new Map();
        // What went down since the last frame counts as held, even if it is up again.
        this._tapped = new Set();
        this._devices = [];
    }

    // Another source of numbers: a function that is called once a frame with this object.
    connect(device) {
        this._devices.push(device);
    }

    get(name) {
        return this.values.get(name) ?? 0;
    }

    set(name, value) {
        this.values.set(name, value);
    }

    // Takes over what was pressed, once a frame.
    frame() {
        const down = new Set([...this._held.values(), ...this._tapped]);
        for (const name of this.read) {
            if (/^(key|mouse)@\w+$/.test(name) && !/^mouse@(x|y|wheel|down)$/.test(name)) {
                this.values.set(name, Number(down.has(name)));
            }
        }
        this.values.set("mouse@down", Number([...down].some((name) => name.startsWith("mouse@"))));
        this._tapped.clear();
        for (const device of this._devices) device(this);
    }

    press(place, name) {
        this._held.set(place, name);
        this._tapped.add(name);
        this.count(name);
        if (name.startsWith("mouse@")) this.count("mouse@down");
    }

    release(place) {
        this._held.delete(place);
    }

    releaseAll() {
        this._held.clear();
    }

    // Counts an event of this name: a key or a button that is pressed.
    count(event) {
        const name = `${event}@count`;
        this.values.set(name, this.get(name) + 1);
    }

    // Follows the pointer over the picture of a canvas, and the keys of the page.
    follow(canvas) {
        const move = (event) => {
            const { left, top, width, height } = pictureIn(canvas);
            this.values.set("mouse@x", Math.min(Math.max((event.clientX - left) / width, 0), 1));
            this.values.set("mouse@y", Math.min(Math.max((event.clientY - top) / height, 0), 1));
        };
        canvas.addEventListener("pointermove", move);
        canvas.addEventListener("pointerdown", (event) => {
            canvas.setPointerCapture?.(event.pointerId);
            move(event);
            this.press(`pointer ${event.pointerId} ${event.button}`, `mouse@${BUTTONS[event.button] ?? "left"}`);
        });
        canvas.addEventListener("pointerup", (event) => this.release(`pointer ${event.pointerId} ${event.button}`));
        canvas.addEventListener("pointercancel", () => this.releaseAll());
        canvas.addEventListener("contextmenu", (event) => this.read.has("mouse@right") && event.preventDefault());
        canvas.addEventListener("wheel", (event) => {
            if (!this.read.has("mouse@wheel")) return;
            event.preventDefault();
            this.values.set("mouse@wheel", this.get("mouse@wheel") - event.deltaY / (event.deltaMode ? 3 : 100));
        }, { passive: false });
    }

    followKeys() {
        window.addEventListener("keydown", (event) => {
            const name = keyName(event.code);
            if (name === undefined || event.repeat || event.target.closest?.("form, button")) return;
            this.press(event.code, `key@${name}`);
            if (this.read.has(`key@${name}`) && !event.ctrlKey && !event.metaKey) event.preventDefault();
        });
        window.addEventListener("keyup", (event) => this.release(event.code));
        window.addEventListener("blur", () => this.releaseAll());
    }
}

// Where the picture of a canvas is in the window: it keeps its form, with room around it.
function pictureIn(canvas) {
    const box = canvas.getBoundingClientRect(), scale = Math.min(box.width / canvas.width, box.height / canvas.height);
    const width = canvas.width * scale, height = canvas.height * scale;
    return { left: box.left + (box.width - width) / 2, top: box.top + (box.height - height) / 2, width, height };
}
