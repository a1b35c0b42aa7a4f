"""Codes about how a patch is written: letters, brackets, forms of statements, pragmas and includes."""

from __future__ import annotations

from collections.abc import Sequence

from weft.codes.spec import CodeSpec

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
        "`#fade` takes the seconds in which a save fades in: 0, which is a cut, or more.",
        wrong="#fade -1\ndisplay(me@x)",
        right="#fade 1\ndisplay(me@x)",
    ),
    CodeSpec(
        "bad-label",
        "What stands before the `:` of an argument is the name of one parameter, as `weft help` shows it.",
        wrong="display(clamp(me@x, 0: 0.2))",
        right="display(clamp(me@x, lo: 0.2))",
    ),
    CodeSpec(
        "bad-map-target",
        "On the left of `~` stands the coordinate that is to move, such as me@x; the new value stands on the right.",
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
        "In the head of a spindle stand the names of its parameters, each perhaps with `=` and the value that it has "
        "if a call leaves it out.",
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
        "A statement begins with a name, `#` or a word such as `spindle`; with anything else, it is not clear what it "
        "is for.",
        wrong="* me@x\ndisplay(me@x)",
        right="wide = 2 * me@x\ndisplay(wide)",
    ),
    CodeSpec(
        "bad-toggle",
        "A toggle is off or on, so it starts at 0 or 1; `#slider` takes other numbers.",
        wrong="#toggle lights<v> = 2\ndisplay(lights)",
        right="#toggle lights<v> = 1\ndisplay(lights)",
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
        "`me` is the place that is computed just now, and you read one of its coordinates: me@x, me@y, me@time, …",
        wrong="display(sin(me))",
        right="display(sin(me@time))",
    ),
    CodeSpec(
        "cannot-set",
        "On the left of `=` stands a name: what a call gives, and a single element of a bundle, cannot be changed "
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
        "This line begins with a sign that continues the line above it: if it is to be a statement of its own, begin "
        "it with a name.",
        wrong="display(me@x)\n(me@y)",
        right="display(me@x)\nother = me@y",
    ),
    CodeSpec(
        "default-before-parameter",
        "Parameters that a call may leave out come last: move this one behind the others, or give those a value, too.",
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
        "Each parameter of a call gets one value: take one of the two away.",
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
        "A slider goes from its first number up to its second, so the second has to be larger.",
        wrong="#slider size<v> = 1, 0, 0.5\ndisplay(size)",
        right="#slider size<v> = 0, 1, 0.5\ndisplay(size)",
    ),
    CodeSpec(
        "foreign-operator",
        "This is how another language writes it: weft writes `and`, `or`, `not`, `!=` and `^`.",
        wrong="display(me@x < 0.5 && me@y < 0.5)",
        right="display(me@x < 0.5 and me@y < 0.5)",
    ),
    CodeSpec(
        "glued-number",
        "A number and a name stand next to each other: for a product, write `*` between them.",
        wrong="wide = me@x\ndisplay(2wide)",
        right="wide = me@x\ndisplay(2 * wide)",
    ),
    CodeSpec(
        "include-cycle",
        "Files that include each other have no beginning: take one `#include` out, and move what both need to a third "
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
        "The file that `#include` names is not there, or you may not read it: its path counts from the folder of this "
        "patch.",
        wrong='#include "shape.weft"\ndisplay(me@x)',
        right='#include "shapes.weft"\ndisplay(me@x)',
    ),
    CodeSpec(
        "incomplete-statement",
        "The statement stops before it says anything: finish it, or take it away.",
        arises="A statement breaks off in a way for which weft has no closer words.",
    ),
    CodeSpec(
        "keyword-as-name",
        "This word belongs to the language, so nothing can be called by it: choose another name.",
        wrong="in = me@x\ndisplay(in)",
        right="inside = me@x\ndisplay(inside)",
    ),
    CodeSpec(
        "label-equals",
        "An argument gets its name by a colon; `=` gives a name its value in a statement of its own.",
        wrong="display(clamp(me@x, lo = 0.2))",
        right="display(clamp(me@x, lo: 0.2))",
    ),
    CodeSpec(
        "labelled-map",
        "A map says itself what it moves, so nothing stands before it: take the label away.",
        wrong="wave = sin(me@x * 9)\ndisplay(wave(x: me@x ~ 1 - me@x))",
        right="wave = sin(me@x * 9)\ndisplay(wave(me@x ~ 1 - me@x))",
    ),
    CodeSpec(
        "malformed-pragma",
        "This line begins with the right word, but goes on in another way than weft expects: compare it with the form "
        "in the hint.",
        wrong="#slider size<v> = 0.5\ndisplay(size)",
        right="#slider size<v> = 0, 1, 0.5\ndisplay(size)",
    ),
    CodeSpec(
        "mismatched-bracket",
        "A bracket is closed by one of another kind: see which of the two that are marked is the wrong one.",
        wrong="display(<me@x, me@y, 0])",
        right="display(<me@x, me@y, 0>)",
    ),
    CodeSpec(
        "misplaced-assignment",
        "`+=` and its like change a value on the way through a spindle; outside, a name has one value, so write `=`.",
        wrong="wave = sin(me@x * 9)\nwave += 0.5\ndisplay(wave)",
        right="wave = sin(me@x * 9) + 0.5\ndisplay(wave)",
    ),
    CodeSpec(
        "misplaced-binding",
        "What a call gives gets its name once: by `name = …` before it, or by `::name<…>` behind it.",
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
        "Square brackets pick an element of a bundle that stands before them: a bundle itself is written with `<` and "
        "`>`.",
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
        "A single `=` gives a name its value, which cannot happen within an expression: to compare, write `==`.",
        wrong="display(if me@px = 10 then 1 else 0)",
        right="display(if me@px == 10 then 1 else 0)",
    ),
    CodeSpec(
        "misplaced-loop",
        "Loops stand in spindles only: outside, every pixel is computed anyway, and a bundle has a member for each "
        "step.",
        wrong="for i in (1 to 3) { v = i }\ndisplay(me@x)",
        right="steps = <i * 0.3 for i in (1 to 3)>\ndisplay(steps)",
    ),
    CodeSpec(
        "misplaced-map",
        "A map moves the strand that stands before its parentheses: name one.",
        wrong="wave = sin(me@x * 9)\ndisplay(me@x ~ 1 - me@x)",
        right="wave = sin(me@x * 9)\ndisplay(wave(me@x ~ 1 - me@x))",
    ),
    CodeSpec(
        "misplaced-out",
        "`out` names the outputs of a spindle: outside of one, and in a loop, leave the word out.",
        wrong="out wave = sin(me@x * 9)\ndisplay(wave)",
        right="wave = sin(me@x * 9)\ndisplay(wave)",
    ),
    CodeSpec(
        "misplaced-output",
        "A spindle gives values to whoever calls it: what is shown or played is said outside.",
        wrong="spindle wave(x) :: v {\n  v = sin(x * 9)\n  display(v)\n}\ndisplay(wave(me@x))",
        right="spindle wave(x) :: v { v = sin(x * 9) }\ndisplay(wave(me@x))",
    ),
    CodeSpec(
        "misplaced-pragma",
        "A line that begins with `#` stands by itself, outside of statements and spindles.",
        wrong="wave = sin(me@x * 9) #fade 1\ndisplay(wave)",
        right="#fade 1\nwave = sin(me@x * 9)\ndisplay(wave)",
    ),
    CodeSpec(
        "misplaced-setting",
        "A setting holds for the whole patch, so it stands outside of spindles.",
        wrong="spindle wave(x) :: v {\n  me<width> = 640\n  v = sin(x * 9)\n}\ndisplay(wave(me@x))",
        right="me<width> = 640\nspindle wave(x) :: v { v = sin(x * 9) }\ndisplay(wave(me@x))",
    ),
    CodeSpec(
        "misplaced-token",
        "What is marked makes no sense behind what stands before it: perhaps it is left over from an edit.",
        wrong="wide = 3@r\ndisplay(me@x * wide)",
        right="wide = 3\ndisplay(me@x * wide)",
    ),
    CodeSpec(
        "missing-binds",
        "`::` stands between a call and the name that it gets, and between the head of a spindle and its outputs.",
        wrong="spindle wave(x) : v { v = sin(x * 9) }\ndisplay(wave(me@x))",
        right="spindle wave(x) :: v { v = sin(x * 9) }\ndisplay(wave(me@x))",
    ),
    CodeSpec(
        "missing-block",
        "What a spindle or a loop does stands in braces behind its head.",
        wrong="spindle wave(x) :: v\ndisplay(me@x)",
        right="spindle wave(x) :: v { v = sin(x * 9) }\ndisplay(wave(me@x))",
    ),
    CodeSpec(
        "missing-comma",
        "A comma separates the names of a list.",
        wrong="img<r g b> = <me@x, me@y, 0>\ndisplay(img)",
        right="img<r, g, b> = <me@x, me@y, 0>\ndisplay(img)",
    ),
    CodeSpec(
        "missing-else",
        "Every pixel and every sample needs a value, so a choice says both: `if … then … else …`.",
        wrong="display(if me@x < 0.5 then 1)",
        right="display(if me@x < 0.5 then 1 else 0)",
    ),
    CodeSpec(
        "missing-equals",
        "`=` stands between a name and its value.",
        wrong="wave<v> sin(me@x * 9)\ndisplay(wave)",
        right="wave<v> = sin(me@x * 9)\ndisplay(wave)",
    ),
    CodeSpec(
        "missing-expression",
        "A value is missing where the mark is: behind an operator, a comma or `=`, something has to follow.",
        wrong="display(sin(me@x *))",
        right="display(sin(me@x * 9))",
    ),
    CodeSpec(
        "missing-in",
        "A loop names what counts its steps, then `in`, then both ends: `for i in (1 to 8)`.",
        wrong="spindle rings(x) :: v { for i (1 to 8) { v += sin(x * i) } }\ndisplay(rings(me@x))",
        right="spindle rings(x) :: v { for i in (1 to 8) { v += sin(x * i) } }\ndisplay(rings(me@x))",
    ),
    CodeSpec(
        "missing-name",
        "A name is missing where the mark is.",
        wrong="= sin(me@x * 9)\ndisplay(me@x)",
        right="wave = sin(me@x * 9)\ndisplay(wave)",
    ),
    CodeSpec(
        "missing-operator",
        "Two values stand next to each other, and weft does not guess what is to be done with them: for a product, "
        "write `*`.",
        wrong="display(2 sin(me@x * 9))",
        right="display(2 * sin(me@x * 9))",
    ),
    CodeSpec(
        "missing-outputs",
        "The head of a spindle says what it gives: its outputs stand behind `::`, one alone or several between `<` "
        "and `>`.",
        wrong="spindle wave(x) :: { v = sin(x * 9) }\ndisplay(wave(me@x))",
        right="spindle wave(x) :: v { v = sin(x * 9) }\ndisplay(wave(me@x))",
    ),
    CodeSpec(
        "missing-parameter",
        "Nothing follows the last comma: name a parameter, or take the comma away.",
        wrong="spindle plus(x, y,) :: v { v = x + y }\ndisplay(plus(me@x, me@y))",
        right="spindle plus(x, y) :: v { v = x + y }\ndisplay(plus(me@x, me@y))",
    ),
    CodeSpec(
        "missing-parameters",
        "A spindle names what it takes in parentheses behind its name, even if that is nothing.",
        wrong="spindle wave { v = sin(me@x * 9) }\ndisplay(wave())",
        right="spindle wave() :: v { v = sin(me@x * 9) }\ndisplay(wave())",
    ),
    CodeSpec(
        "missing-parentheses",
        "What a call or an output statement takes stands in parentheses.",
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
        "Either all arguments of a remap are maps with `~`, or none is and they go by their order: choose one way.",
        wrong="wave = sin(me@x * 9)\ndisplay(wave(me@x ~ me@y, 0.5))",
        right="wave = sin(me@x * 9)\ndisplay(wave(me@x ~ me@y, me@y ~ 0.5))",
    ),
    CodeSpec(
        "nested-bundle",
        "A bundle holds single strands: to put several bundles in a row, write join(a, b).",
        wrong="display(join(<me@x, <me@y, 0>>))",
        right="display(join(me@x, <me@y, 0>))",
    ),
    CodeSpec(
        "nested-spindle",
        "A spindle stands outside of others, which can call it from there.",
        wrong=(
            "spindle waves(x) :: v {\n  spindle wave(y) :: w { w = sin(y * 9) }\n  v = wave(x)\n}\n"
            "display(waves(me@x))"
        ),
        right="spindle wave(y) :: w { w = sin(y * 9) }\nspindle waves(x) :: v { v = wave(x) }\ndisplay(waves(me@x))",
    ),
    CodeSpec(
        "not-a-statement",
        "This value is computed for nobody: give it a name, or show or play it.",
        wrong="me@x * 9\ndisplay(me@x)",
        right="wide = me@x * 9\ndisplay(wide)",
    ),
    CodeSpec(
        "not-needs-parentheses",
        "`not` reaches over all that stands behind it, so within an expression it goes in parentheses.",
        wrong="display(me@x * not me@y)",
        right="display(me@x * (not me@y))",
    ),
    CodeSpec(
        "not-text",
        "A patch is a plain text in UTF-8, and this file is something else: see whether it is the right one, and let "
        "the editor save it as UTF-8.",
        arises=(
            "The file holds bytes that are no UTF-8, or characters that no text has; it may be a picture, or in "
            "an old encoding."
        ),
    ),
    CodeSpec(
        "number-overflow",
        "No number is larger than about 1.8e308: perhaps a zero too many slipped into the exponent.",
        wrong="display(me@x * 1e999)",
        right="display(me@x * 1e9)",
    ),
    CodeSpec(
        "outputs-in-spindle",
        "Within a spindle, a name is one strand or a bundle, without a list of outputs: leave the list away.",
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
        "`|>` hands what stands on its left to a call on its right, as its first argument; other arithmetic goes "
        "without it.",
        wrong="display(me@x |> 2)",
        right="display(me@x |> pow(2))",
    ),
    CodeSpec(
        "piped-output",
        "Output statements are not part of a pipe: put the whole pipe between their parentheses.",
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
        "The value at the start lies outside of the two ends of the slider, so it begins at the nearer end.",
        wrong="#slider size<v> = 0, 1, 2\ndisplay(size)",
        right="#slider size<v> = 0, 2, 2\ndisplay(size)",
        severity="warning",
    ),
    CodeSpec(
        "stray-bracket",
        "This closing bracket has no partner before it: take it away, or add the opening one.",
        wrong="display(sin(me@x * 9)))",
        right="display(sin(me@x * 9))",
    ),
    CodeSpec(
        "stray-comma",
        "Between `[` and `]` stands one number, which says which element is meant.",
        wrong="tint = <1, 0.5, 0>\ndisplay(tint[0, 1])",
        right="tint = <1, 0.5, 0>\ndisplay(tint[0] + tint[1])",
    ),
    CodeSpec(
        "stray-comment-end",
        "`*/` ends a comment that was never begun: take it away, or add `/*`; a comment does not hold another one.",
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
        "Brackets, includes or calls of spindles go too deep into each other (256 levels, and 64 of includes): split "
        "what is innermost off, and give it a name.",
        arises=(
            "A text with more than 256 open brackets, or made of spindles of which each calls the next, more than "
            "256 times."
        ),
    ),
    CodeSpec(
        "too-long",
        "A patch has at most 250,000 characters: move parts of it to other files, and include them.",
        arises="The file has more than 250,000 characters; it may be no patch at all.",
    ),
    CodeSpec(
        "too-many-errors",
        "There are more mistakes than it helps to list: correct the first ones, and the others show up, or vanish "
        "with them.",
        arises=(
            "A text with more than 50 mistakes in how it is written, or with more than 2000 strands that cannot "
            "be computed."
        ),
    ),
    CodeSpec(
        "typographic-character",
        "A word processor or a web page has put a fancy sign in the place of a plain one: type it again.",
        wrong="display(me@x − 0.5)",
        right="display(me@x - 0.5)",
    ),
    CodeSpec(
        "unbound-multi-call",
        "`f<3>(…)` gives several strands at once, so it needs names for them: `::name<a, b, c>` behind it.",
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
        "A comment that begins with `/*` reaches to the next `*/`, and there is none, so all the rest of the patch is "
        "a comment.",
        wrong="/* a wave\ndisplay(sin(me@x * 9))",
        right="/* a wave */\ndisplay(sin(me@x * 9))",
    ),
    CodeSpec(
        "unclosed-string",
        'A text in quotes ends on the line on which it begins: close it with ", and write \\n where a new line is '
        "meant.",
        wrong='text("hello)::t<v>\ndisplay(t)',
        right='text("hello")::t<v>\ndisplay(t)',
    ),
    CodeSpec(
        "unknown-character",
        "This sign means nothing in weft.",
        wrong="display(me@x $ 2)",
        right="display(me@x * 2)",
    ),
    CodeSpec(
        "unknown-letter",
        "Names are made of the letters a to z and A to Z, digits and `_`, so that every keyboard can type them.",
        wrong="größe = 0.5\ndisplay(me@x * größe)",
        right="size = 0.5\ndisplay(me@x * size)",
    ),
    CodeSpec(
        "unknown-library",
        "There is no library of this name: `weft help` lists them all.",
        wrong="#use std.noises\ndisplay(me@x)",
        right="#use std.noise\ndisplay(me@x)",
    ),
    CodeSpec(
        "unknown-pragma",
        "No line begins with `#` and this word: `weft help` lists those that do.",
        wrong="#knob size<v> = 0, 1, 0.5\ndisplay(me@x)",
        right="#slider size<v> = 0, 1, 0.5\ndisplay(me@x * size)",
    ),
    CodeSpec(
        "unlabelled-argument",
        "After an argument with a name, all others need theirs, too, since their order says nothing any more.",
        wrong="display(clamp(me@x, lo: 0.2, 0.8))",
        right="display(clamp(me@x, lo: 0.2, hi: 0.8))",
    ),
    CodeSpec(
        "wrong-quotes",
        "A text stands in straight double quotes.",
        wrong="text('hello')::t<v>\ndisplay(t)",
        right='text("hello")::t<v>\ndisplay(t)',
    ),
)
