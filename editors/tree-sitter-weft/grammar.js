// The grammar of weft for tree-sitter. What is a mistake is for weft's own parser to say: this one takes each text that
// weft takes, and a few more, and gives it the form by which editors colour, fold and indent.
//
// An expression is read in two ways, as in weft/syntax/parser.py. Directly inside of a bundle, no bundle can start, and a
// bare < or > is not an operator. Comparisons do not chain, so `a<b> = …` is never one.

const LEVEL = { choice: 0, pipe: 1, or: 2, and: 3, not: 4, compare: 5, add: 6, times: 7, sign: 8, power: 9, postfix: 10 };

// Keywords that may begin an expression. Before a colon they are names, as all others are by themselves.
const LABELS = ['if', 'not', 'me'];

const list = (rule) => seq(rule, repeat(seq(',', rule)));

// Symbols that begin with > are read one character at a time: a > may close what is open.
const GREATER = ['_greater_equal', '_much_greater', '_much_greater_equal'];
const COMPARISONS = ['==', '===', '!=', '<<', '<=', '<<='];

const numbers = ($, count) => [$._signed, ...Array(count - 1).fill(seq(',', $._signed))];

// The rules of an expression, read as in `suffix`.
function expression(suffix, primary) {
  const of = ($, name) => $[name + suffix];
  const right = ($) => choice(of($, '_term'), alias(of($, 'choice'), $.choice));
  const binary = ($, assoc, level, operator) =>
    assoc(level, seq(field('left', of($, '_term')), field('operator', alias(operator, $.operator)), field('right', right($))));
  // Inside of a bundle, what follows the first > says whether it closes the bundle: both are tried.
  const closing = suffix ? 0 : LEVEL.compare;
  const compared = ($, level, ...operators) => prec.left(level, seq(
    field('left', of($, '_term')),
    field('operator', choice(...operators.map((each) => alias(each, $.operator)))),
    field('right', choice(right($), alias(of($, 'negation'), $.negation))),
  ));
  const logical = ($, level, word) =>
    prec.left(level, seq(field('left', of($, '_expression')), field('operator', word), field('right', of($, '_expression'))));
  return {
    ['_expression' + suffix]: ($) => choice(
      of($, '_term'),
      alias(of($, 'choice'), $.choice),
      alias(of($, 'comparison'), $.comparison),
      alias(of($, 'logical'), $.logical),
      alias(of($, 'negation'), $.negation),
    ),
    ['_term' + suffix]: ($) => choice(
      $[primary],
      $.number,
      $.string,
      alias(of($, 'arithmetic'), $.arithmetic),
      alias(of($, 'sign'), $.sign),
      alias(of($, 'pipe'), $.pipe),
    ),
    ['choice' + suffix]: ($) => prec.right(LEVEL.choice, seq(
      'if', field('condition', $._expression), 'then', field('then', $._expression), 'else',
      field('else', of($, '_expression')),
    )),
    ['comparison' + suffix]: ($) => choice(
      compared($, LEVEL.compare, ...COMPARISONS, ...(suffix ? [] : ['<', '>'])),
      compared($, closing, ...GREATER.map((name) => $[name])),
    ),
    ['logical' + suffix]: ($) => choice(logical($, LEVEL.or, 'or'), logical($, LEVEL.and, 'and')),
    ['negation' + suffix]: ($) => prec(LEVEL.not, seq('not', of($, '_expression'))),
    ['arithmetic' + suffix]: ($) => choice(
      binary($, prec.left, LEVEL.add, '+'),
      binary($, prec.left, LEVEL.add, '-'),
      binary($, prec.left, LEVEL.times, '*'),
      binary($, prec.left, LEVEL.times, '/'),
      binary($, prec.left, LEVEL.times, '%'),
      binary($, prec.right, LEVEL.power, '^'),
    ),
    ['sign' + suffix]: ($) => prec(LEVEL.sign, seq(alias('-', $.operator), choice(right($), alias(of($, 'negation'), $.negation)))),
    ['pipe' + suffix]: ($) => prec.left(LEVEL.pipe, seq(
      field('from', of($, '_expression')), '|>', field('to', choice($[primary], $.number, $.string, $.mapping)),
    )),
  };
}

module.exports = grammar({
  name: 'weft',

  word: ($) => $._word,

  extras: ($) => [
    /[ \t\r\n\f\v\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]/,
    $.doc_comment,
    $.comment,
  ],

  conflicts: ($) => [
    [$.pragma],
    [$.binding, $.multicall, $._inner_primary],
    [$.binding, $._inner_primary],
    [$._expression_inside, $.comparison_inside],
  ],

  rules: {
    source_file: ($) => repeat($._item),

    _item: ($) => choice(
      $.binding, $.setting, $.spindle, $.loop, $.call_statement, $.pragma, ';',
    ),

    // --- statements ---

    binding: ($) => seq(
      choice(
        seq(
          optional(choice('let', 'out')), field('name', $.identifier),
          optional(choice(field('outputs', $.outputs), $.access)), $._becomes,
        ),
        seq('out', alias('=', $.operator)),
      ),
      field('value', $._expression),
    ),

    _becomes: ($) => alias(choice('=', '+=', '-=', '*=', '/='), $.operator),

    outputs: ($) => seq('<', list($.identifier), '>'),

    setting: ($) => seq('me', '<', field('name', $.identifier), '>', alias('=', $.operator), field('value', $._expression)),

    // A call, one with several results, or a pipe, with or without a name for what it gives.
    call_statement: ($) => prec(-1, seq(
      choice($.call, $.multicall, $.index, $.member, $.pipe),
      optional($.bound),
    )),

    bound: ($) => seq('::', field('name', $.identifier), field('outputs', $.outputs)),

    multicall: ($) => seq(
      field('name', $.identifier), '<', repeat('-'), field('count', choice($.number, $.identifier)), '>', $.arguments,
    ),

    spindle: ($) => seq(
      'spindle', field('name', $.identifier),
      field('parameters', $.parameters),
      '::', field('outputs', choice($.outputs, $.identifier)),
      field('body', $.block),
    ),

    parameters: ($) => seq('(', optional(list($.parameter)), ')'),

    parameter: ($) => seq(
      field('name', $.identifier), optional($.outputs), optional(seq('=', field('default', $._expression))),
    ),

    loop: ($) => seq('for', $._range, field('body', $.block)),

    _range: ($) => seq(
      field('variable', $.identifier), 'in', '(', field('first', $._expression), 'to', field('last', $._expression), ')',
    ),

    block: ($) => seq('{', repeat($._item), '}'),

    // --- pragmas: a word after # at the start of a line ---

    pragma: ($) => choice(
      seq(alias('#include', $.directive), field('path', $.string)),
      seq(alias('#use', $.directive), field('library', $.library)),
      seq(alias('#slider', $.directive), $._parameter, ...numbers($, 3), optional($.string), optional($._raw)),
      seq(alias('#toggle', $.directive), $._parameter, $._signed, optional($.string)),
      seq(alias('#menu', $.directive), $._parameter, $._signed, ',', list($.string), optional($.string)),
      seq(alias('#button', $.directive), field('name', $.identifier), $.outputs, optional($.string)),
      seq(alias('#xy', $.directive), $._parameter, ...numbers($, 2), optional($.string)),
      seq(alias('#color', $.directive), $._parameter, $.string, optional($.string)),
      seq(alias('#fade', $.directive), $._signed, optional($._raw)),
      seq(alias('#quantize', $.directive), $._signed),
    ),

    // `raw` or `numbers`; a name on the next line begins a statement, if it can.
    _raw: ($) => prec.dynamic(-1, alias($.identifier, $.word)),

    library: ($) => seq($.identifier, repeat(seq('.', $.identifier))),
    _parameter: ($) => seq(field('name', $.identifier), $.outputs, alias('=', $.operator)),
    _signed: ($) => seq(optional(alias('-', $.operator)), $.number),

    // --- expressions ---

    ...expression('', '_primary'),
    ...expression('_inside', '_inner_primary'),

    _greater_equal: () => seq('>', '='),
    _much_greater: () => seq('>', '>'),
    _much_greater_equal: () => seq('>', '>', '='),

    _primary: ($) => choice($._inner_primary, $.bundle),

    _inner_primary: ($) => choice($.identifier, $.coordinate, $.call, $.index, $.member, $.group, $.tuple),

    coordinate: ($) => seq('me', $.access),
    call: ($) => prec(LEVEL.postfix, seq(field('function', $._primary), $.arguments)),
    index: ($) => prec(LEVEL.postfix, seq($._primary, '[', $._expression, ']')),
    member: ($) => prec(LEVEL.postfix, seq($._primary, $.access)),
    access: ($) => seq('@', field('output', choice($.identifier, alias(token.immediate(/[0-9]/), $.identifier)))),

    arguments: ($) => seq('(', optional(list($.argument)), ')'),
    argument: ($) => seq(optional($.label), $._expression, optional($._map)),
    label: ($) => seq(
      choice($.identifier, ...LABELS.map((word) => alias(word, $.identifier))), ':',
    ),
    _map: ($) => seq('~', $._expression),

    group: ($) => seq('(', $._expression, ')'),
    tuple: ($) => seq('(', $._expression, repeat1(seq(',', $._expression)), ')'),
    mapping: ($) => seq('(', list(seq($._expression, $._map)), ')'),

    bundle: ($) => seq('<', choice(list($._expression_inside), seq($._expression_inside, 'for', $._range)), '>'),

    // --- words ---

    identifier: ($) => $._word,
    _word: () => /[A-Za-z_][A-Za-z0-9_]*/,
    number: () => /([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?/,

    string: ($) => seq('"', repeat(choice($.escape, token.immediate(prec(1, /[^"\\\n]+/)))), token.immediate('"')),
    escape: () => token.immediate(/\\["\\nt]/),

    doc_comment: () => token(prec(1, /\/\/\/([^\/\n][^\n]*)?/)),
    comment: () => token(choice(prec(2, /\/\/\/\/[^\n]*/), /\/\/[^\n]*/, /\/\*[^*]*\*+([^\/*][^*]*\*+)*\//)),
  },
});
