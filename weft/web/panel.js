// The panel of parameters: a line for each, with what sets it.

export class Panel {
    constructor(form, parameters, inputs) {
        this.form = form;
        for (const parameter of parameters) form.append(line(parameter, inputs));
        form.addEventListener("submit", (event) => event.preventDefault());
    }

    get isEmpty() {
        return this.form.childElementCount === 0;
    }

    toggle() {
        this.form.hidden = !this.form.hidden || this.isEmpty;
    }
}

// The number that a slider shows: short, but as exact as its range asks for.
function shown(value, { low, high }) {
    return value.toFixed(Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(Math.max(high - low, 1e-4))))));
}

function line(parameter, inputs) {
    const label = document.createElement("label"), title = document.createElement("span");
    title.textContent = parameter.label;
    label.append(title, ...controls(parameter, inputs));
    return label;
}

function controls(parameter, inputs) {
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
        made.value = inputs.get(name);
        made.setAttribute("aria-label", name);
        value.value = shown(inputs.get(name), parameter);
        made.addEventListener("input", () => {
            inputs.set(name, Number(made.value));
            value.value = shown(Number(made.value), parameter);
        });
        return [made, value];
    });
}

function checkbox({ inputs: [name] }, inputs) {
    const made = input("checkbox");
    made.checked = inputs.get(name) !== 0;
    made.addEventListener("change", () => inputs.set(name, Number(made.checked)));
    return made;
}

function button({ inputs: [name], label }, inputs) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = label;
    const press = () => {
        inputs.set(name, 1);
        inputs.set(`${name}@count`, inputs.get(`${name}@count`) + 1);
    };
    // After the next frame, so that one sees it.
    const release = () => requestAnimationFrame(() => inputs.set(name, 0));
    made.addEventListener("pointerdown", press);
    made.addEventListener("keydown", (event) => !event.repeat && isPressed(event) && press());
    made.addEventListener("keyup", (event) => isPressed(event) && release());
    for (const end of ["pointerup", "pointerleave", "blur"]) made.addEventListener(end, release);
    return made;
}

const isPressed = (event) => event.code === "Space" || event.code === "Enter";

function menu({ inputs: [name], options, low }, inputs) {
    const made = document.createElement("select");
    options.forEach((option, at) => made.add(new Option(option, String(low + at))));
    made.value = String(inputs.get(name));
    made.addEventListener("change", () => inputs.set(name, Number(made.value)));
    return made;
}

function colour({ inputs: names }, inputs) {
    const made = input("color");
    const digits = names.map((name) => Math.round(255 * inputs.get(name)).toString(16).padStart(2, "0"));
    made.value = `#${digits.join("")}`;
    made.addEventListener("input", () => {
        names.forEach((name, at) => inputs.set(name, parseInt(made.value.slice(1 + 2 * at, 3 + 2 * at), 16) / 255));
    });
    return made;
}
