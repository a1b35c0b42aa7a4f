"""Pages that play a patch in a browser: one HTML file, with everything in it.

Begin with `weft.web.page.page_of`, which makes the page of a program. `weft.web.description` says in JSON what the
program is; the JavaScript next to these modules plays it, and `main.js` is where that begins.
"""
