// The canvases of a page: the card draws on the first one, and the pictures of other windows are copied to theirs.

export class Screen {
    // A screen takes the place of the one before it. The poster stays until something is shown.
    constructor(stage) {
        this.stage = stage;
        for (const old of stage.querySelectorAll("canvas")) old.remove();
        this.canvas = document.createElement("canvas");
        this._others = new Map();
        stage.append(this.canvas);
        this._poster = document.getElementById("poster");
    }

    // Makes a canvas for each picture, the first window's first.
    open(pictures) {
        pictures.forEach((picture, at) => {
            const canvas = at === 0 ? this.canvas : document.createElement("canvas");
            canvas.width = picture.width;
            canvas.height = picture.height;
            canvas.tabIndex = 0;
            canvas.setAttribute("role", "img");
            canvas.setAttribute("aria-label", picture.record.target || document.title);
            if (at > 0) {
                this.stage.append(canvas);
                this._others.set(picture, canvas.getContext("2d"));
            }
        });
        return [this.canvas, ...[...this._others.values()].map((context) => context.canvas)];
    }

    // Shows what was drawn. The first picture is shown last, so that it stays.
    show(card, pictures) {
        for (const picture of [...pictures].reverse()) {
            card.show(picture.shown);
            const other = this._others.get(picture);
            if (other === undefined) continue;
            other.clearRect(0, 0, picture.width, picture.height);
            other.drawImage(card.canvas, 0, 0);
        }
        this._poster?.remove();
        this._poster = null;
    }

    fullscreen() {
        if (document.fullscreenElement) document.exitFullscreen();
        else document.documentElement.requestFullscreen?.();
    }
}

// How long a note is seen, in milliseconds.
const MOMENT = 2000;

// Tells something in words, over the picture.
export class Words {
    constructor(place, short) {
        this.place = place;
        this.short = short;
        this._said = new Set();
    }

    // Takes back what was said.
    drop(texts) {
        for (const text of texts) this._said.delete(text);
        this.place.textContent = [...this._said].join("\n");
        this.place.hidden ||= this._said.size === 0;
    }

    // Tells something for a moment.
    note(text) {
        this.short.textContent = text;
        this.short.hidden = false;
        clearTimeout(this._ends);
        this._ends = setTimeout(() => (this.short.hidden = true), MOMENT);
    }

    say(text) {
        if (this._said.has(text)) return;
        this._said.add(text);
        this.place.textContent = [...this._said].join("\n");
        this.place.hidden = false;
        this.place.onclick = () => (this.place.hidden = true);
    }
}
