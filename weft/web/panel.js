// The panel of parameters: a line for each, with what sets it.

export class Panel {
    // `learn` is called with a parameter whose control is clicked with the right button, and whether with Shift.
    constructor(form, parameters, inputs, learn) {
        this.form = form;
        this._controls = [];
        for (const parameter of parameters) this._add(parameter, inputs, learn);
        form.addEventListener("submit", (event) => event.preventDefault());
    }

    _add(parameter, inputs, learn) {
        const label = document.createElement("label"), title = document.createElement("span");
        const controls = controlsOf(parameter, inputs);
        title.textContent = parameter.label;
        label.append(title, ...controls);
        label.addEventListener("contextmenu", (event) => {
            event.preventDefault();
            learn(parameter, event.shiftKey);
        });
        this._controls.push(...controls.filter(({ show }) => show !== undefined));
        this.form.append(label);
    }

    get isEmpty() {
        return this.form.childElementCount === 0;
    }

    toggle() {
        this.form.hidden = !this.form.hidden || this.isEmpty;
    }

    // Shows the values, which something else may have set.
    show() {
        for (const control of this._controls) control.show();
    }
}

// The number that a slider shows: short, but as exact as its range asks for.
function shown(value, { low, high }) {
    return value.toFixed(Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(Math.max(high - low, 1e-4))))));
}

// What sets a parameter. Each that has a value has a method `show`, which reads it from the inputs.
function controlsOf(parameter, inputs) {
    switch (parameter.kind) {
        case "toggle": return [checkbox(parameter, inputs)];
        case "button": return [button(parameter, inputs)];
        case "menu": return [menu(parameter, inputs)];
        case "colour": case "color": return parameter.inputs.length === 3 ? [colour(parameter, inputs)] : sliders(parameter, inputs);
    }
    return sliders(parameter, inputs);
}

function input(type) {
    const made = document.createElement("input");
    made.type = type;
    return made;
}

function sliders(parameter, inputs) {
    return parameter.inputs.flatMap((name) => {
        const made = input("range"), value = document.createElement("output");
        Object.assign(made, { min: parameter.low, max: parameter.high, step: "any" });
        made.setAttribute("aria-label", name);
        made.show = () => {
            made.value = inputs.get(name);
            value.value = shown(inputs.get(name), parameter);
        };
        made.show();
        made.addEventListener("input", () => {
            inputs.set(name, Number(made.value));
            value.value = shown(Number(made.value), parameter);
        });
        return [made, value];
    });
}

function checkbox({ inputs: [name] }, inputs) {
    const made = input("checkbox");
    made.show = () => (made.checked = inputs.get(name) !== 0);
    made.show();
    made.addEventListener("change", () => inputs.set(name, Number(made.checked)));
    return made;
}

function button({ inputs: [name], label }, inputs) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = label;
    const press = () => {
        inputs.set(name, 1);
        inputs.count(name);
    };
    // After the next frame, so that one sees it.
    const release = () => requestAnimationFrame(() => inputs.set(name, 0));
    made.addEventListener("pointerdown", (event) => event.button === 0 && press());
    made.addEventListener("keydown", (event) => !event.repeat && isPressed(event) && press());
    made.addEventListener("keyup", (event) => isPressed(event) && release());
    for (const end of ["pointerup", "pointerleave", "blur"]) made.addEventListener(end, release);
    return made;
}

const isPressed = (event) => event.code === "Space" || event.code === "Enter";

function menu({ inputs: [name], options, low }, inputs) {
    const made = document.createElement("select");
    options.forEach((option, at) => made.add(new Option(option, String(low + at))));
    made.show = () => (made.value = String(inputs.get(name)));
    made.show();
    made.addEventListener("change", () => inputs.set(name, Number(made.value)));
    return made;
}

function colour({ inputs: names }, inputs) {
    const made = input("color");
    const digits = (name) => Math.round(255 * inputs.get(name)).toString(16).padStart(2, "0");
    made.show = () => (made.value = `#${names.map(digits).join("")}`);
    made.show();
    made.addEventListener("input", () => {
        names.forEach((name, at) => inputs.set(name, parseInt(made.value.slice(1 + 2 * at, 3 + 2 * at), 16) / 255));
    });
    return made;
}
