"""Codes about how a patch is written: letters, brackets, forms of statements, pragmas and includes."""

from __future__ import annotations

from collections.abc import Sequence

from weft.codes.rows import CodeSpec

TEXT: Sequence[CodeSpec] = (
    CodeSpec(
        "bad-colour",
        "A colour is written in quotes, as # and six of the signs 0 to 9 and a to f: two for red, two for green, two "
        "for blue.",
        wrong='#color tint<r, g, b> = "orange"\ndisplay(tint)',
        right='#color tint<r, g, b> = "#ff8800"\ndisplay(tint)',
    ),
    CodeSpec(
        "bad-count",
        "The number in `f<3>(…)` says how often f is called, so it is a whole number from 1 to 64.",
        wrong="spindle wave(x) :: v { v = sin(x * 9) }\nwave<2.5>(me@x)::w<a, b>\ndisplay(w@a)",
        right="spindle wave(x) :: v { v = sin(x * 9) }\nwave<2>(me@x)::w<a, b>\ndisplay(w@a)",
    ),
    CodeSpec(
        "bad-escape",
        'Within quotes, a backslash goes before ", \\, n or t only: for a backslash itself, write two of them.',
        wrong='text("left\\right")::t<v>\ndisplay(t)',
        right='text("left\\\\right")::t<v>\ndisplay(t)',
    ),
    CodeSpec(
        "bad-fade",
        "`#fade` takes the number of seconds over which a save fades in: 0, which is a cut, or more.",
        wrong="#fade -1\ndisplay(me@x)",
        right="#fade 1\ndisplay(me@x)",
    ),
    CodeSpec(
        "bad-label",
        "What comes before the `:` of an argument is the name of a parameter: `weft help` and the name of the call "
        "show them all.",
        wrong="display(clamp(me@x, 0: 0.2))",
        right="display(clamp(me@x, lo: 0.2))",
    ),
    CodeSpec(
        "bad-map-target",
        "The left side of `~` is the coordinate to move, such as me@x; the right side is its new value.",
        wrong="rings = sin(me@x * 40)\ndisplay(rings(1 - me@x ~ me@x))",
        right="rings = sin(me@x * 40)\ndisplay(rings(me@x ~ 1 - me@x))",
    ),
    CodeSpec(
        "bad-menu",
        "A menu needs two texts or more to choose from, and starts at the number of one of them, counted from 0.",
        wrong='#menu shape<v> = 0, "sine"\ndisplay(me@x * shape)',
        right='#menu shape<v> = 0, "sine", "saw"\ndisplay(me@x * shape)',
    ),
    CodeSpec(
        "bad-multi-call",
        "`f<3>(…)` takes one list of arguments and ends there: remap or pick its outputs afterwards, by their names.",
        wrong="spindle wave(x) :: v { v = sin(x * 9) }\nwave<2>(me@x)(me@y)::w<a, b>\ndisplay(w@a)",
        right="spindle wave(x) :: v { v = sin(x * 9) }\nwave<2>(me@x)::w<a, b>\ndisplay(w@a(me@y))",
    ),
    CodeSpec(
        "bad-output",
        "Outputs have names, so that others can read them: put a name of your own between `<` and `>`.",
        wrong="wave<1> = sin(me@x * 9)\ndisplay(wave)",
        right="wave<v> = sin(me@x * 9)\ndisplay(wave)",
    ),
    CodeSpec(
        "bad-parameter",
        "Parameters of a spindle are names; one that calls may leave out has its value after `=`, as in size = 0.2.",
        wrong="spindle ring(0.2) :: v { v = length(me@x, me@y) < 0.2 }\ndisplay(ring(1))",
        right="spindle ring(size = 0.2) :: v { v = length(me@x, me@y) < size }\ndisplay(ring())",
    ),
    CodeSpec(
        "bad-quantize",
        "`#quantize` takes the number of beats that a save waits for: above 0, such as 1 or 4.",
        wrong="#quantize 0\ndisplay(me@x)",
        right="#quantize 4\ndisplay(me@x)",
    ),
    CodeSpec(
        "bad-setting",
        "A setting is one name between `<` and `>` and one number: write a line for each.",
        wrong="me<width, height> = 640\ndisplay(me@x)",
        right="me<width> = 640\nme<height> = 360\ndisplay(me@x)",
    ),
    CodeSpec(
        "bad-start",
        "A statement starts with a name, `#` or a word such as `spindle`: anything else does not say what it is for.",
        wrong="* me@x\ndisplay(me@x)",
        right="wide = 2 * me@x\ndisplay(wide)",
    ),
    CodeSpec(
        "bad-toggle",
        "A toggle is off or on, so it starts at 0 or 1; `#slider` takes other numbers.",
        wrong="#toggle lamps<v> = 2\ndisplay(lamps)",
        right="#toggle lamps<v> = 1\ndisplay(lamps)",
    ),
    CodeSpec(
        "bare-angle",
        "Between the `<` and `>` of a bundle, a bare `<` or `>` would begin or end one: write `<<` or `>>` to compare "
        "there, or use parentheses.",
        wrong="display(<me@x < 0.5, me@y, 0>)",
        right="display(<me@x << 0.5, me@y, 0>)",
    ),
    CodeSpec(
        "bare-colour",
        "After `#`, weft expects a word such as `slider`: a colour is a text in quotes, for `#color`, or a bundle of "
        "numbers from 0 to 1.",
        wrong="display(#ff8800)",
        right='#color tint<r, g, b> = "#ff8800"\ndisplay(tint)',
    ),
    CodeSpec(
        "bare-me",
        "`me` is the point that is being computed: read one of its coordinates, such as me@x, me@y or me@time.",
        wrong="display(sin(me))",
        right="display(sin(me@time))",
    ),
    CodeSpec(
        "cannot-set",
        "The left side of `=` is a name: the result of a call, or a single element of a bundle, cannot be changed "
        "from outside.",
        wrong="tint = <1, 0.5, 0>\ntint[0] = 0.8\ndisplay(tint)",
        right="tint = <0.8, 0.5, 0>\ndisplay(tint)",
    ),
    CodeSpec(
        "chained-comparison",
        "A comparison has two sides: join two of them with `and`.",
        wrong="display(0.2 < me@x < 0.8)",
        right="display(0.2 < me@x and me@x < 0.8)",
    ),
    CodeSpec(
        "continued-line",
        "A line that starts with this sign continues the line above: if it is a statement of its own, start it with a "
        "name.",
        wrong="display(me@x)\n(me@y)",
        right="display(me@x)\nother = me@y",
    ),
    CodeSpec(
        "default-before-parameter",
        "Parameters that a call may leave out come last: move this one to the front, or give it a value, too.",
        wrong="spindle disc(size = 0.2, x) :: v { v = abs(x) < size }\ndisplay(disc(0.3, me@x))",
        right="spindle disc(x, size = 0.2) :: v { v = abs(x) < size }\ndisplay(disc(me@x))",
    ),
    CodeSpec(
        "dot",
        "An output is picked with `@`, and a value is handed on with `|>`: a dot belongs to numbers only.",
        wrong='load("picture.png")::img<r, g, b>\ndisplay(img.r)',
        right='load("picture.png")::img<r, g, b>\ndisplay(img@r)',
    ),
    CodeSpec(
        "double-equals",
        "`==` asks whether two values are equal: to give a name its value, write one `=`.",
        wrong="wave == sin(me@x * 9)\ndisplay(wave)",
        right="wave = sin(me@x * 9)\ndisplay(wave)",
    ),
    CodeSpec(
        "duplicate-label",
        "Each parameter of a call gets one value: take one of the two out.",
        wrong="display(clamp(me@x, lo: 0.2, lo: 0.4))",
        right="display(clamp(me@x, lo: 0.2, hi: 0.4))",
    ),
    CodeSpec(
        "duplicate-output",
        "Each output of a list needs a name of its own.",
        wrong="img<r, r, b> = <me@x, me@y, 0>\ndisplay(img@r)",
        right="img<r, g, b> = <me@x, me@y, 0>\ndisplay(img)",
    ),
    CodeSpec(
        "duplicate-parameter",
        "Each parameter of a spindle needs a name of its own.",
        wrong="spindle plus(x, x) :: v { v = x + x }\ndisplay(plus(me@x, me@y))",
        right="spindle plus(x, y) :: v { v = x + y }\ndisplay(plus(me@x, me@y))",
    ),
    CodeSpec(
        "empty-range",
        "A slider runs from its first number up to its second, so the second has to be larger.",
        wrong="#slider size<v> = 1, 0, 0.5\ndisplay(size)",
        right="#slider size<v> = 0, 1, 0.5\ndisplay(size)",
    ),
    CodeSpec(
        "foreign-operator",
        "Other languages write it this way: weft writes `and`, `or`, `not`, `!=` and `^`.",
        wrong="display(me@x < 0.5 && me@y < 0.5)",
        right="display(me@x < 0.5 and me@y < 0.5)",
    ),
    CodeSpec(
        "glued-number",
        "A number and a name run into each other: for a product, write `*` between them.",
        wrong="wide = me@x\ndisplay(2wide)",
        right="wide = me@x\ndisplay(2 * wide)",
    ),
    CodeSpec(
        "include-cycle",
        "These files include each other in a circle: take one `#include` out, and move what both need to a third "
        "file.",
        wrong='#include "patch.weft"\ndisplay(me@x)',
        right='#include "shapes.weft"\ndisplay(me@x)',
    ),
    CodeSpec(
        "include-not-a-patch",
        "`#include` brings in other patches only, whose names end in `.weft`: pictures, films and sounds are read by "
        'load("…").',
        wrong='#include "picture.png"\ndisplay(me@x)',
        right='load("picture.png")::img<r, g, b>\ndisplay(img)',
    ),
    CodeSpec(
        "include-unreadable",
        "The file that `#include` names is not there, or you may not read it: its path starts in the folder of the "
        "file that includes it.",
        wrong='#include "shape.weft"\ndisplay(me@x)',
        right='#include "shapes.weft"\ndisplay(me@x)',
    ),
    CodeSpec(
        "incomplete-statement",
        "The statement breaks off before it says anything: finish it, or take it out.",
        arises="A statement that breaks off in a way for which there is no closer message.",
    ),
    CodeSpec(
        "keyword-as-name",
        "This word belongs to the language and cannot be a name: choose another one.",
        wrong="in = me@x\ndisplay(in)",
        right="inside = me@x\ndisplay(inside)",
    ),
    CodeSpec(
        "label-equals",
        "An argument is named with a colon; `=` gives a name its value, in a statement of its own.",
        wrong="display(clamp(me@x, lo = 0.2))",
        right="display(clamp(me@x, lo: 0.2))",
    ),
    CodeSpec(
        "labelled-map",
        "A map already says what it moves: leave the label out.",
        wrong="wave = sin(me@x * 9)\ndisplay(wave(x: me@x ~ 1 - me@x))",
        right="wave = sin(me@x * 9)\ndisplay(wave(me@x ~ 1 - me@x))",
    ),
    CodeSpec(
        "malformed-pragma",
        "This line starts with the right word, but does not continue as weft expects: compare it with the form in the "
        "hint.",
        wrong="#slider size<v> = 0.5\ndisplay(size)",
        right="#slider size<v> = 0, 1, 0.5\ndisplay(size)",
    ),
    CodeSpec(
        "mismatched-bracket",
        "A bracket is closed by one of another kind: check which of the two marked ones is wrong.",
        wrong="display(<me@x, me@y, 0])",
        right="display(<me@x, me@y, 0>)",
    ),
    CodeSpec(
        "misplaced-assignment",
        "`+=` and the like change a value on its way through a spindle; outside, a name has one value: write `=`.",
        wrong="wave = sin(me@x * 9)\nwave += 0.5\ndisplay(wave)",
        right="wave = sin(me@x * 9) + 0.5\ndisplay(wave)",
    ),
    CodeSpec(
        "misplaced-binding",
        "The result of a call gets its name once: by `name = …` before it, or by `::name<…>` after it.",
        wrong="a = noise(me@x * 5)::b<v>\ndisplay(a)",
        right="noise(me@x * 5)::b<v>\ndisplay(b)",
    ),
    CodeSpec(
        "misplaced-block",
        "Braces belong to spindles and loops: a choice is written as `if … then … else …`, without them.",
        wrong="dark = if me@x < 0.5 { 0.2 }\ndisplay(dark)",
        right="dark = if me@x < 0.5 then 0.2 else 1\ndisplay(dark)",
    ),
    CodeSpec(
        "misplaced-bracket",
        "Square brackets pick an element of the bundle before them: a bundle itself is written with `<` and `>`.",
        wrong="display([me@x, me@y, 0])",
        right="display(<me@x, me@y, 0>)",
    ),
    CodeSpec(
        "misplaced-colon",
        "A colon belongs to the arguments of a call, between a name and its value: here it means nothing.",
        wrong="wide = 3 : 4\ndisplay(me@x * wide)",
        right="wide = 3 / 4\ndisplay(me@x * wide)",
    ),
    CodeSpec(
        "misplaced-equals",
        "A single `=` gives a name its value, and cannot be part of an expression: to compare, write `==`.",
        wrong="display(if me@px = 10 then 1 else 0)",
        right="display(if me@px == 10 then 1 else 0)",
    ),
    CodeSpec(
        "misplaced-loop",
        "Loops are for spindles only: outside, every pixel is computed anyway, and a bundle can have a member for "
        "each step.",
        wrong="for i in (1 to 3) { v = i }\ndisplay(me@x)",
        right="steps = <i * 0.3 for i in (1 to 3)>\ndisplay(steps)",
    ),
    CodeSpec(
        "misplaced-map",
        "A map moves the strand in front of its parentheses, and there is none here: name one.",
        wrong="wave = sin(me@x * 9)\ndisplay(me@x ~ 1 - me@x)",
        right="wave = sin(me@x * 9)\ndisplay(wave(me@x ~ 1 - me@x))",
    ),
    CodeSpec(
        "misplaced-out",
        "`out` names the outputs of a spindle: outside of one, and inside a loop, leave the word out.",
        wrong="out wave = sin(me@x * 9)\ndisplay(wave)",
        right="wave = sin(me@x * 9)\ndisplay(wave)",
    ),
    CodeSpec(
        "misplaced-output",
        "A spindle hands values to its callers: say outside of it what is shown or played.",
        wrong="spindle wave(x) :: v {\n  v = sin(x * 9)\n  display(v)\n}\ndisplay(wave(me@x))",
        right="spindle wave(x) :: v { v = sin(x * 9) }\ndisplay(wave(me@x))",
    ),
    CodeSpec(
        "misplaced-pragma",
        "A line that starts with `#` is a line of its own, outside of statements and spindles.",
        wrong="wave = sin(me@x * 9) #fade 1\ndisplay(wave)",
        right="#fade 1\nwave = sin(me@x * 9)\ndisplay(wave)",
    ),
    CodeSpec(
        "misplaced-setting",
        "A setting holds for the whole patch: put it outside of spindles.",
        wrong="spindle wave(x) :: v {\n  me<width> = 640\n  v = sin(x * 9)\n}\ndisplay(wave(me@x))",
        right="me<width> = 640\nspindle wave(x) :: v { v = sin(x * 9) }\ndisplay(wave(me@x))",
    ),
    CodeSpec(
        "misplaced-token",
        "The marked part makes no sense after what comes before it: perhaps it is left over from an edit.",
        wrong="wide = 3@r\ndisplay(me@x * wide)",
        right="wide = 3\ndisplay(me@x * wide)",
    ),
    CodeSpec(
        "missing-binds",
        "`::` goes between a call and the name that it gets, and between the head of a spindle and its outputs.",
        wrong="spindle wave(x) : v { v = sin(x * 9) }\ndisplay(wave(me@x))",
        right="spindle wave(x) :: v { v = sin(x * 9) }\ndisplay(wave(me@x))",
    ),
    CodeSpec(
        "missing-block",
        "What a spindle or a loop does goes in braces after its head.",
        wrong="spindle wave(x) :: v\ndisplay(me@x)",
        right="spindle wave(x) :: v { v = sin(x * 9) }\ndisplay(wave(me@x))",
    ),
    CodeSpec(
        "missing-comma",
        "The names in a list are separated by commas.",
        wrong="img<r g b> = <me@x, me@y, 0>\ndisplay(img)",
        right="img<r, g, b> = <me@x, me@y, 0>\ndisplay(img)",
    ),
    CodeSpec(
        "missing-else",
        "Every pixel and every sample needs a value, so a choice gives both: `if … then … else …`.",
        wrong="display(if me@x < 0.5 then 1)",
        right="display(if me@x < 0.5 then 1 else 0)",
    ),
    CodeSpec(
        "missing-equals",
        "`=` goes between a name and its value.",
        wrong="wave<v> sin(me@x * 9)\ndisplay(wave)",
        right="wave<v> = sin(me@x * 9)\ndisplay(wave)",
    ),
    CodeSpec(
        "missing-expression",
        "A value is missing at the mark: something has to follow an operator, a comma or `=`.",
        wrong="display(sin(me@x *))",
        right="display(sin(me@x * 9))",
    ),
    CodeSpec(
        "missing-in",
        "A loop names its counter, then `in`, then both ends: `for i in (1 to 8)`.",
        wrong="spindle rings(x) :: v { for i (1 to 8) { v += sin(x * i) } }\ndisplay(rings(me@x))",
        right="spindle rings(x) :: v { for i in (1 to 8) { v += sin(x * i) } }\ndisplay(rings(me@x))",
    ),
    CodeSpec(
        "missing-name",
        "A name is missing at the mark.",
        wrong="= sin(me@x * 9)\ndisplay(me@x)",
        right="wave = sin(me@x * 9)\ndisplay(wave)",
    ),
    CodeSpec(
        "missing-operator",
        "Two values are next to each other, and weft does not guess what to do with them: for a product, write `*`.",
        wrong="display(2 sin(me@x * 9))",
        right="display(2 * sin(me@x * 9))",
    ),
    CodeSpec(
        "missing-outputs",
        "The head of a spindle says what it gives: after `::`, a single output, or several between `<` and `>`.",
        wrong="spindle wave(x) :: { v = sin(x * 9) }\ndisplay(wave(me@x))",
        right="spindle wave(x) :: v { v = sin(x * 9) }\ndisplay(wave(me@x))",
    ),
    CodeSpec(
        "missing-parameter",
        "Nothing follows the last comma: name a parameter, or take the comma out.",
        wrong="spindle plus(x, y,) :: v { v = x + y }\ndisplay(plus(me@x, me@y))",
        right="spindle plus(x, y) :: v { v = x + y }\ndisplay(plus(me@x, me@y))",
    ),
    CodeSpec(
        "missing-parameters",
        "A spindle lists its parameters in parentheses after its name, even if it has none.",
        wrong="spindle wave { v = sin(me@x * 9) }\ndisplay(wave())",
        right="spindle wave() :: v { v = sin(me@x * 9) }\ndisplay(wave())",
    ),
    CodeSpec(
        "missing-parentheses",
        "What a call or an output statement takes goes in parentheses.",
        wrong="display me@x",
        right="display(me@x)",
    ),
    CodeSpec(
        "missing-then",
        "A choice reads `if … then … else …`, with all three words.",
        wrong="display(if me@x < 0.5 else 0)",
        right="display(if me@x < 0.5 then 1 else 0)",
    ),
    CodeSpec(
        "missing-to",
        "A loop runs from one number to another, with `to` between them: `for i in (1 to 8)`.",
        wrong="spindle rings(x) :: v { for i in (1, 8) { v += sin(x * i) } }\ndisplay(rings(me@x))",
        right="spindle rings(x) :: v { for i in (1 to 8) { v += sin(x * i) } }\ndisplay(rings(me@x))",
    ),
    CodeSpec(
        "mixed-maps",
        "The arguments of a remap are either all maps with `~`, or none is, and they go by position: choose one way.",
        wrong="wave = sin(me@x * 9)\ndisplay(wave(me@x ~ me@y, 0.5))",
        right="wave = sin(me@x * 9)\ndisplay(wave(me@x ~ me@y, me@y ~ 0.5))",
    ),
    CodeSpec(
        "nested-bundle",
        "A bundle holds single strands: join(a, b) puts several bundles in a row.",
        wrong="display(join(<me@x, <me@y, 0>>))",
        right="display(join(me@x, <me@y, 0>))",
    ),
    CodeSpec(
        "nested-spindle",
        "A spindle cannot be written inside another one: put it outside, and call it from there.",
        wrong=(
            "spindle waves(x) :: v {\n  spindle wave(y) :: w { w = sin(y * 9) }\n  v = wave(x)\n}\n"
            "display(waves(me@x))"
        ),
        right="spindle wave(y) :: w { w = sin(y * 9) }\nspindle waves(x) :: v { v = wave(x) }\ndisplay(waves(me@x))",
    ),
    CodeSpec(
        "not-a-statement",
        "Nothing uses this value: give it a name, or show or play it.",
        wrong="me@x * 9\ndisplay(me@x)",
        right="wide = me@x * 9\ndisplay(wide)",
    ),
    CodeSpec(
        "not-needs-parentheses",
        "`not` applies to everything after it, so inside an expression it goes in parentheses.",
        wrong="display(me@x * not me@y)",
        right="display(me@x * (not me@y))",
    ),
    CodeSpec(
        "not-text",
        "A patch is plain text in UTF-8, and this file is something else: check that it is the right one, and have "
        "your editor save it as UTF-8.",
        arises=(
            "A file with bytes that are not UTF-8, or with characters that no text has: a picture, or text in an "
            "old encoding."
        ),
    ),
    CodeSpec(
        "number-overflow",
        "No number is larger than about 1.8e308: perhaps the exponent has a digit too many.",
        wrong="display(me@x * 1e999)",
        right="display(me@x * 1e9)",
    ),
    CodeSpec(
        "outputs-in-spindle",
        "Inside a spindle, a name is one strand or a bundle: leave the list of outputs out.",
        wrong=(
            "spindle warm(x) :: <r, g> {\n  tint<a, b> = <x, x * 0.5>\n  out r = tint@a\n  out g = tint@b\n}\n"
            "display(warm(me@x)@r)"
        ),
        right=(
            "spindle warm(x) :: <r, g> {\n  tint = <x, x * 0.5>\n  out r = tint[0]\n  out g = tint[1]\n}\n"
            "display(warm(me@x)@r)"
        ),
    ),
    CodeSpec(
        "pipe-needs-a-call",
        "`|>` hands its left side to the call on its right, as the first argument: for arithmetic, write the operator "
        "alone.",
        wrong="display(me@x |> 2)",
        right="display(me@x |> pow(2))",
    ),
    CodeSpec(
        "piped-output",
        "An output statement is not part of a pipe: put the whole pipe in its parentheses.",
        wrong="me@x |> sin() |> display()",
        right="display(me@x |> sin())",
    ),
    CodeSpec(
        "setting-not-a-number",
        "Settings are fixed before anything is computed, so each is a plain number.",
        wrong="me<bpm> = 60 * 2\ndisplay(me@x)",
        right="me<bpm> = 120\ndisplay(me@x)",
    ),
    CodeSpec(
        "single-colon",
        "A name gets its value with `=`, and a call gets its name with `::`; a single colon belongs to arguments.",
        wrong="wave: sin(me@x * 9)\ndisplay(wave)",
        right="wave = sin(me@x * 9)\ndisplay(wave)",
    ),
    CodeSpec(
        "start-out-of-range",
        "The start value is outside the range of the slider, so it starts at the nearer end.",
        wrong="#slider size<v> = 0, 1, 2\ndisplay(size)",
        right="#slider size<v> = 0, 2, 2\ndisplay(size)",
        severity="warning",
    ),
    CodeSpec(
        "stray-bracket",
        "This closing bracket has no partner: take it out, or add the opening one.",
        wrong="display(sin(me@x * 9)))",
        right="display(sin(me@x * 9))",
    ),
    CodeSpec(
        "stray-comma",
        "Between `[` and `]` goes one number, which picks one element.",
        wrong="tint = <1, 0.5, 0>\ndisplay(tint[0, 1])",
        right="tint = <1, 0.5, 0>\ndisplay(tint[0] + tint[1])",
    ),
    CodeSpec(
        "stray-comment-end",
        "`*/` ends a comment that never began: take it out, or add `/*`; comments do not nest.",
        wrong="display(me@x) */",
        right="display(me@x)",
    ),
    CodeSpec(
        "stray-word",
        "`then`, `else`, `in` and `to` belong to choices and loops, and there is none before this one.",
        wrong="display(me@x else 1)",
        right="display(if me@x < 0.5 then me@x else 1)",
    ),
    CodeSpec(
        "too-deep",
        "Brackets or calls of spindles are nested more than 256 deep, or includes more than 64: take the innermost "
        "part out, and give it a name.",
        arises=(
            "A text with more than 256 open brackets, or made of spindles of which each calls the next, more than "
            "256 times."
        ),
    ),
    CodeSpec(
        "too-long",
        "A patch has at most 250,000 characters: move parts of it to other files, and include those.",
        arises="A file with more than 250,000 characters, which may be no patch at all.",
    ),
    CodeSpec(
        "too-many-errors",
        "There are more mistakes than a list could help with: correct the first ones, and the others appear, or "
        "vanish with them.",
        arises=(
            "A text with more than 50 mistakes in how it is written, or with more than 2000 strands that cannot "
            "be computed."
        ),
    ),
    CodeSpec(
        "typographic-character",
        "A word processor or a web page has replaced a plain sign by a fancy one: type it again.",
        wrong="display(me@x − 0.5)",
        right="display(me@x - 0.5)",
    ),
    CodeSpec(
        "unbound-multi-call",
        "`f<3>(…)` gives several strands at once, and they need names: write `::name<a, b, c>` after it.",
        wrong="spindle wave(x) :: v { v = sin(x * 9) }\nwave<2>(me@x)\ndisplay(me@x)",
        right="spindle wave(x) :: v { v = sin(x * 9) }\nwave<2>(me@x)::w<a, b>\ndisplay(w@a)",
    ),
    CodeSpec(
        "unclosed-bracket",
        "A bracket is opened and never closed: the mark shows where it has to end at the latest.",
        wrong="display(sin(me@x * 9)",
        right="display(sin(me@x * 9))",
    ),
    CodeSpec(
        "unclosed-comment",
        "A comment that starts with `/*` reaches to the next `*/`: there is none, so the rest of the patch is a "
        "comment.",
        wrong="/* a wave\ndisplay(sin(me@x * 9))",
        right="/* a wave */\ndisplay(sin(me@x * 9))",
    ),
    CodeSpec(
        "unclosed-string",
        'Text in quotes ends on the line where it starts: close it with ", and write \\n for a new line.',
        wrong='text("hello)::t<v>\ndisplay(t)',
        right='text("hello")::t<v>\ndisplay(t)',
    ),
    CodeSpec(
        "unknown-character",
        "This sign means nothing in weft: it may come from another language, or from a slip of the finger.",
        wrong="display(me@x $ 2)",
        right="display(me@x * 2)",
    ),
    CodeSpec(
        "unknown-letter",
        "Names consist of the letters a to z and A to Z, digits and `_`, so that every keyboard can type them.",
        wrong="größe = 0.5\ndisplay(me@x * größe)",
        right="size = 0.5\ndisplay(me@x * size)",
    ),
    CodeSpec(
        "unknown-library",
        "There is no library with this name: `weft help` lists them all.",
        wrong="#use std.noises\ndisplay(me@x)",
        right="#use std.noise\ndisplay(me@x)",
    ),
    CodeSpec(
        "unknown-pragma",
        "No `#` line starts with this word: `weft help` lists those that there are.",
        wrong="#knob size<v> = 0, 1, 0.5\ndisplay(me@x)",
        right="#slider size<v> = 0, 1, 0.5\ndisplay(me@x * size)",
    ),
    CodeSpec(
        "unlabelled-argument",
        "After an argument with a label, all others need labels, too, since positions say nothing any more.",
        wrong="display(clamp(me@x, lo: 0.2, 0.8))",
        right="display(clamp(me@x, lo: 0.2, hi: 0.8))",
    ),
    CodeSpec(
        "wrong-quotes",
        "Text goes in straight double quotes.",
        wrong="text('hello')::t<v>\ndisplay(t)",
        right='text("hello")::t<v>\ndisplay(t)',
    ),
)
