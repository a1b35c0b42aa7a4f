// Starts the modules of the page. They stand in the page as texts, each with its name, since a page that is opened from
// a disk cannot import files. Each becomes a `data:` address, in which the names of the modules that it imports are
// replaced by theirs.
(() => {
    const texts = new Map(), addresses = new Map();
    for (const script of document.querySelectorAll("script[data-module]")) {
        texts.set(script.dataset.module, script.textContent);
    }
    const address = (name) => {
        if (!addresses.has(name)) {
            const text = texts.get(name).replace(/(from |import )"\.\/([\w.]+)"/g, (_, word, other) => {
                return `${word}"${address(other)}"`;
            });
            const bytes = new TextEncoder().encode(`${text}\n//# sourceURL=weft/${name}`);
            let letters = "";
            bytes.forEach((byte) => (letters += String.fromCharCode(byte)));
            addresses.set(name, `data:text/javascript;base64,${btoa(letters)}`);
        }
        return addresses.get(name);
    };
    window.weft = { address };
    import(address("main.js"));
})();
