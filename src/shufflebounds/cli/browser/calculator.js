/* The calculator: a form whose fields come from calculator_fields.json, and the answers of the library.
 *
 * Answers come from the server of `shufflebounds ui`. The site has none: its window.shuffleboundsLibrary has functions `answer` and
 * `tradeoff` of a query that return what the server returns, and raise an error with the property `unanswered` where they cannot.
 * Everything is written as text, never as HTML.
 */
"use strict";

(() => {
  const place = document.getElementById("calculate");
  const START = {question: "epsilon", mechanism: "stronger-clones"};
  const SYMBOLS = {epsilon: "ε", delta: "δ", log_delta: "log δ"};
  // what was typed into a field, for the next question that has it; at first an example
  const kept = {
    users: "1e6", local_eps: "4", eps: "0.5", delta: "1e-8", bins: "20", sigma: "5", k: "60", n: "100", p: "0.5",
  };
  // fields of different mechanisms with the same meaning
  const SAME = {budget: "local_eps"};
  let fields, asked = "", turn = 0;

  /* Returns an element. An attribute that is a function listens to the event of its name; one that is null is left out. */
  function make(name, attributes = {}, ...children) {
    const svg = ["svg", "path", "line", "text"].includes(name);
    const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (typeof value === "function") element.addEventListener(key, value);
      else if (value !== null) element.setAttribute(key, value);
    }
    element.append(...children.filter((child) => child !== null));
    return element;
  }

  const closed = (text, ...children) => make("details", {}, make("summary", {}, text), ...children);
  const spaced = (name) => name.replaceAll("_", " ");

  async function reply(page, query) {
    const response = await fetch(`${page}?${new URLSearchParams(query)}`)
      .catch(() => { throw new Error("There is no reply. Is the command shufflebounds ui still running?"); });
    const told = await response.json();
    if (!response.ok) throw new Error(told.error);
    return told;
  }

  const library = window.shuffleboundsLibrary
    ?? {answer: (query) => reply("answer", query), tradeoff: (query) => reply("tradeoff", query)};

  /* ---- the question ---- */

  const about = (query) => query.question === "tail" ? fields.tails[query.mechanism] : fields.mechanisms[query.mechanism];

  /* Returns the names of the mechanisms, or of the tails, of which a question can be asked. */
  const possible = (question) => question === "tail" ? Object.keys(fields.tails)
    : Object.keys(fields.mechanisms).filter((name) => question in fields.mechanisms[name].questions);

  const names = (query) => query.question === "tail" ? {needed: Object.keys(about(query).options), optional: []}
    : about(query).questions[query.question];

  /* Returns the literal in Python of a word, or of a number as the command reads it. */
  function literal(text, words = []) {
    if (words.includes(text)) return JSON.stringify(text);
    const plain = text.trim().replaceAll("_", ""), value = Number(plain);
    if (!Number.isFinite(value)) return `float(${JSON.stringify(plain)})`;
    if (/^[+-]?\d+$/.test(plain)) return String(BigInt(plain));
    return /e/i.test(plain) && Number.isInteger(value) ? String(BigInt(value)) : plain;
  }

  /* Returns the line in Python that prints the answer, or null. */
  function python(query) {
    const one = about(query), needed = names(query).needed;
    if (query.question === "tail") {
      const given = needed.map((name) => literal(query[name])).join(", ");
      return `from shufflebounds import tails; print(tails.${query.mechanism}(${given}))`;
    }
    const named = (list) => list.filter((name) => query[name]).map((name) => `${name}=${literal(query[name])}`);
    const own = Object.entries(one.options).filter(([name, option]) => (query[name] || option.always))
      .map(([name, option]) => `${option.parameter}=${literal(query[name] ?? String(option.default), option.words)}`);
    const target = named(["eps", "delta", "releases", "devices"]);
    let line = `${one.class}(${own.join(", ")})`;
    if (query.question === "users")
      line = one.shuffles ? `shuffle.Shuffled.calibrate(${[line, ...target].join(", ")}).users`
        : `${one.class}.calibrate(${[...own, ...target].join(", ")}).users`;
    else if (query.question === "calibrate")
      line = one.finds && `${one.class}.${one.finds}(${[...own, ...target].join(", ")})`;
    else {
      for (const [name, method] of [["users", "shuffled"], ["times", "self_compose"], ["devices", "for_group"]])
        if (query[name] && !(name in one.options)) line += `.${method}(${literal(query[name])})`;
      line += query.question === "epsilon" ? `.epsilon(${literal(query.delta)})` : `.delta(${literal(query.eps)})`;
    }
    const imported = ["mechanisms", "shuffle"].filter((name) => line?.includes(`${name}.`)).join(", ");
    return line && `from shufflebounds import ${imported}; print(${line})`;
  }

  function command({question, mechanism, ...given}) {
    const quoted = (text) => /^[\w.+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
    const options = Object.entries(given).map(([name, value]) => `--${name.replaceAll("_", "-")} ${quoted(value)}`);
    return ["shufflebounds", question, mechanism, ...options].join(" ");
  }

  /* Returns the question about eps that has what a search found as its parameters; of eps or delta, the question itself. */
  function followed(query, told) {
    if (query.question === "epsilon" || query.question === "delta") return query;
    const {target_delta: delta, releases: times, ...found} = told.parameters, one = about(query);
    const fits = ([name, value]) => value != null && (name in one.options || name in one.others);
    const rest = Object.entries({...found, delta, times}).filter(fits).map(([name, value]) => [name, String(value)]);
    return {question: "epsilon", mechanism: query.mechanism, ...Object.fromEntries(rest)};
  }

  /* ---- the form ---- */

  function field(query, name, usually) {
    const {text, default: usual, words = []} = about(query).options[name] ?? about(query).others[name];
    return make("div", {class: "field"},
      make("label", {for: `field-${name}`}, spaced(name)),
      make("input", {
        id: `field-${name}`, name, type: "text", inputmode: words.length ? "text" : "decimal", autocomplete: "off",
        spellcheck: "false", value: query[name] ?? usually[SAME[name] ?? name] ?? "", placeholder: usual ?? "",
        "aria-describedby": `about-${name}`, list: words.length ? `words-${name}` : null,
      }),
      words.length ? make("datalist", {id: `words-${name}`}, ...words.map((word) => make("option", {value: word}))) : null,
      make("small", {id: `about-${name}`}, text));
  }

  function choices(query) {
    const option = (name) => make("option", {value: name, selected: name === query.mechanism ? "" : null}, name);
    const known = possible(query.question);
    const within = (subpackage) => known.filter((name) => fields.mechanisms[name].class.startsWith(subpackage));
    if (query.question === "tail") return known.map(option);
    return Object.entries({shuffle: "bounds and protocols", mechanisms: "randomizers and noise"})
      .map(([subpackage, label]) => make("optgroup", {label}, ...within(subpackage).map(option)));
  }

  /* Shows the form of a query, and asks it. `focus` selects the control that has the focus again. */
  function show(query, focus) {
    query = {...START, ...query};
    if (!(query.question in fields.questions)) query.question = START.question;
    const known = possible(query.question);
    if (!known.includes(query.mechanism)) query.mechanism = known.includes(START.mechanism) ? START.mechanism : known[0];
    const {needed, optional} = names(query), first = [...needed, ...optional.filter((name) => name === "users")];
    const more = optional.filter((name) => name !== "users");
    // a link holds all parameters of its question
    const usually = Object.keys(query).some((name) => !(name in START)) ? {} : kept;
    const radio = ([value, words]) => make("label", {},
      make("input", {type: "radio", name: "question", value, checked: value === query.question ? "" : null}), ` ${words}`);
    let form = place.querySelector("form");
    if (form?.dataset.question !== query.question) {
      form = make("form", {
        submit: (event) => { event.preventDefault(); ask(); }, change: changed, input: edited, "data-question": query.question,
      },
        make("fieldset", {}, make("legend", {}, "I want to know"), ...Object.entries(fields.questions).map(radio)),
        make("div", {class: "field"},
          make("label", {for: "field-mechanism"}, query.question === "tail" ? "log tail" : "mechanism"),
          make("select", {id: "field-mechanism", name: "mechanism", "aria-describedby": "about-mechanism"}, ...choices(query)),
          make("small", {id: "about-mechanism"})),
        make("div", {class: "parameters"}),
        make("button", {}, "Compute"));
      place.replaceChildren(form, make("div", {class: "result"}, make("output", {}), make("div")), make("div", {class: "curves"}));
    }
    // The list of mechanisms stays, because a new one would forget the letters that are typed to find a name.
    form.mechanism.value = query.mechanism;
    form.querySelector("#about-mechanism").textContent = about(query).text;
    form.querySelector(".parameters").replaceChildren(
      make("div", {class: "fields"}, ...first.map((name) => field(query, name, usually))),
      more.length ? closed("More options", make("div", {class: "fields"}, ...more.map((name) => field(query, name, {})))) : "");
    if (more.some((name) => query[name])) form.querySelector("details").open = true;
    if (focus) form.querySelector(focus).focus();
    asked = "";
    ask();
  }

  /* Returns a text without the commas of a number such as 50,000, and powers of ten as 1e6. */
  const number = (text) => (/^[1-9]\d{1,2}(,\d{3})+$|^[1-9](,\d{3}){2,}$/.test(text) ? text.replaceAll(",", "") : text)
    .replace(/^10(?:\*\*|\^)(\d+)$/, "1e$1");

  function typed() {
    const data = Object.entries(Object.fromEntries(new FormData(place.querySelector("form"))));
    return Object.fromEntries(data.map(([name, value]) => [name, number(value.trim())]).filter(([, value]) => value !== ""));
  }

  /* Marks the answer as that of other parameters. */
  function edited(event) {
    if (event.target.type === "text") place.querySelector(".result").classList.add("edited");
  }

  function changed(event) {
    const {question, mechanism} = typed(), name = event.target.name;
    if (name === "question" || name === "mechanism") show({question, mechanism}, name === "question" ? "input:checked" : null);
    else ask();
  }

  /* ---- the answer ---- */

  const grouped = (value) => Number.isInteger(value) && value > 9999 ? value.toLocaleString("en-US") : String(value);

  /* Returns five digits of an upper bound, rounded up. */
  function short(value) {
    if (typeof value !== "number" || value === 0) return value === "inf" ? "∞" : String(value);
    const near = Number(value.toPrecision(5)), unit = 10 ** (Math.floor(Math.log10(Math.abs(value))) - 4);
    return String(near >= value ? near : Number((near + unit).toPrecision(5)));
  }

  function table(head, rows) {
    const row = ([name, ...cells]) => make("tr", {}, make("th", {scope: "row"}, name), ...cells.map((one) => make("td", {}, one)));
    return make("div", {class: "scrolled"}, make("table", {},
      make("thead", {}, make("tr", {}, ...head.map((cell) => make("th", {scope: "col"}, cell)))),
      make("tbody", {}, ...rows.map(row))));
  }

  function headline({question, mechanism, ...given}, told) {
    if (question === "tail") return `${mechanism}(${Object.values(given).join(", ")}) = ${told.value}`;
    if (question === "users") return `${grouped(told.parameters.users)} users`;
    const shown = question === "delta" && told.delta.upper < 1e-300 ? "log_delta" : question;
    if (question !== "calibrate") return `${SYMBOLS[shown]} ≤ ${short(told[shown].upper)}`;
    const sought = ([name, value]) => value !== null && !(name in given) && !name.startsWith("target_");
    const five = (value) => typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(5)) : grouped(value);
    return Object.entries(told.parameters).filter(sought).map(([name, value]) => `${spaced(name)} ${five(value)}`).join(", ");
  }

  /* Returns the lines to copy: in Python, for the shell, and the link. */
  function lines(query, found) {
    const copy = (text) => ({currentTarget: button}) =>
      navigator.clipboard.writeText(text).then(() => { button.textContent = "Copied"; });
    const copied = ([title, text]) => make("div", {}, make("h3", {}, title), make("div", {class: "line"}, make("code", {}, text),
      make("button", {type: "button", "aria-label": `Copy: ${title}`, click: copy(text)}, "Copy")));
    const calibrated = query.question === "calibrate" && found;
    return [
      calibrated ? ["In Python, with these parameters", python(found)] : ["In Python", python(query)],
      ["On the command line", query.question === "tail" ? null : command(query)],
      ["Link to this question", location.href],
    ].filter(([, text]) => text).map(copied);
  }

  /* Returns the parts of an answer below its headline. */
  function parts(query, told) {
    const bounds = Object.keys(SYMBOLS).filter((name) => name in told);
    const rows = bounds.flatMap((name) => ["upper", "lower"].map((side) => [`${SYMBOLS[name]}, ${side} bound`, told[name][side]]));
    const errors = Object.entries(told.accuracy ?? {}).map(([name, value]) => [name, Number(value.toPrecision(6))]);
    const others = query.question === "calibrate" ? [...Object.entries(told.parameters), ...errors] : [];
    rows.push(...others.filter(([, value]) => value !== null).map(([name, value]) => [spaced(name), grouped(value)]));
    const claim = (text) => make("p", {class: text.startsWith(" ") ? "inner" : null}, text.trim());
    return [
      ...(told.warnings ?? []).map((text) => make("p", {class: "warning"}, text)),
      rows.length ? table(["", "value"], rows) : "",
      told.rests ? closed(`Upper bound: ${told.evidence.upper.verdict}`, ...[told.neighbours, ...told.rests].map(claim)) : "",
    ];
  }

  async function ask() {
    const query = typed(), words = String(new URLSearchParams(query));
    place.querySelector(".result").classList.remove("edited");
    if (words === asked) return;
    asked = words;
    const mine = ++turn, [result, curves] = place.querySelectorAll(".result, .curves"), [headed, below] = result.children;
    for (const input of place.querySelectorAll(".field input")) {
      if (input.value.trim()) kept[SAME[input.name] ?? input.name] = input.value;
      input.removeAttribute("aria-invalid");
    }
    history.replaceState(null, "", `#${words}`);
    result.dataset.state = "busy";
    curves.replaceChildren();
    const missing = names(query).needed.filter((name) => !(name in query));
    if (missing.length) {
      headed.textContent = `Fill in ${missing.map(spaced).join(", ")}.`;
      below.replaceChildren();
      result.dataset.state = "incomplete";
      return;
    }
    const waiting = setTimeout(() => { headed.textContent = "Computing…"; }, 400);
    try {
      const told = await library.answer(query);
      if (mine !== turn) return;
      const found = query.question === "tail" ? null : followed(query, told);
      headed.textContent = headline(query, told);
      below.replaceChildren(...parts(query, told), ...lines(query, found));
      result.dataset.state = "answered";
      if (found) draw(found, curves, () => mine === turn);
    } catch (problem) {
      if (mine !== turn) return;
      asked = "";
      headed.textContent = problem.message;
      below.replaceChildren(...(problem.unanswered ? lines(query) : []));
      result.dataset.state = problem.unanswered ? "unanswered" : "refused";
      const named = /^(\w+)/.exec(problem.message)?.[1];
      if (!problem.unanswered) place.querySelector(`#field-${named}`)?.setAttribute("aria-invalid", "true");
    } finally {
      clearTimeout(waiting);
    }
  }

  /* ---- the curves ---- */

  const WIDTH = 460, HEIGHT = 300, LEFT = 64, BOTTOM = 44, EDGE = 14;
  const LINES = {upper: "upper bound", lower: "lower bound", none: "perfect privacy"};

  /* Returns the marks of an axis: of a logarithmic one powers of ten and, if these are few, 2 and 5 times them. */
  function ticks(low, high, log) {
    if (!log) return [0, 1, 2, 3, 4, 5].map((i) => low + (high - low) * i / 5);
    const of = (steps) => {
      const out = [];
      for (let k = Math.floor(Math.log10(low)); k <= Math.log10(high); k++)
        for (const step of steps) out.push(Number(`${step}e${k}`));
      return out.filter((x) => x >= low && x <= high);
    };
    const tens = of([1]), marks = tens.length > 2 ? tens : of([1, 2, 5]), every = Math.ceil(marks.length / 7);
    return marks.filter((_, i) => i % every === 0);
  }

  const spelled = (x) => x >= 1e4 || (x < 1e-3 && x) ? x.toExponential(0).replace("e+", "e") : String(Number(x.toPrecision(3)));

  /* Returns a figure of the points {x, upper, lower, none}, or null; both axes are logarithmic, or both go from 0 to 1. */
  function figure(title, axes, points, log) {
    const drawn = Object.keys(LINES).filter((name) => points.some((point) => name in point));
    const good = (value) => Number.isFinite(value) && (!log || value > 0);
    const all = points.flatMap((point) => drawn.map((name) => point[name])).filter(good);
    if (points.length < 2 || all.length < 2) return null;
    const range = log ? [[points[0].x, points.at(-1).x], [Math.min(...all), Math.max(...all)]] : [[0, 1], [0, 1]];
    const scale = log ? Math.log : (value) => value;
    const part = (value, [low, high]) => high > low ? (scale(value) - scale(low)) / (scale(high) - scale(low)) : 0.5;
    const x = (value) => LEFT + part(value, range[0]) * (WIDTH - LEFT - EDGE);
    const y = (value) => HEIGHT - BOTTOM - part(value, range[1]) * (HEIGHT - BOTTOM - EDGE);
    const at = (point, name) => `${x(point.x).toFixed(1)} ${y(point[name]).toFixed(1)}`;
    const path = (name) => `M${points.filter((point) => good(point[name])).map((point) => at(point, name)).join("L")}`;
    const middle = (HEIGHT - BOTTOM + EDGE) / 2, bounds = drawn.filter((name) => name !== "none");
    return make("figure", {}, make("figcaption", {}, title),
      make("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${axes[1]} by ${axes[0]}; the numbers follow`},
        ...ticks(...range[0], log).flatMap((mark) => [
          make("line", {x1: x(mark), x2: x(mark), y1: EDGE, y2: HEIGHT - BOTTOM}),
          make("text", {x: x(mark), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle"}, spelled(mark))]),
        ...ticks(...range[1], log).flatMap((mark) => [
          make("line", {x1: LEFT, x2: WIDTH - EDGE, y1: y(mark), y2: y(mark)}),
          make("text", {x: LEFT - 6, y: y(mark) + 4, "text-anchor": "end"}, spelled(mark))]),
        make("text", {x: (LEFT + WIDTH - EDGE) / 2, y: HEIGHT - 6, "text-anchor": "middle", class: "axis"}, axes[0]),
        make("text", {transform: `translate(14 ${middle}) rotate(-90)`, "text-anchor": "middle", class: "axis"}, axes[1]),
        ...drawn.map((name) => make("path", {d: path(name), class: name}))),
      make("p", {class: "key"}, ...drawn.map((name) => make("span", {class: name}, LINES[name]))),
      closed("The numbers", table([axes[0], ...bounds.map((name) => LINES[name])],
        points.map((point) => [grouped(point.x), ...bounds.map((name) => point[name])]))));
  }

  /* Draws the trade-off function and the answer over the number of users, while `wanted` says that the question is the same. */
  async function draw(query, curves, wanted) {
    const slots = [make("div"), make("div")];
    curves.append(...slots);
    await new Promise((resolve) => setTimeout(resolve, 150));            // who still types needs no curve
    if (!wanted()) return;
    const curve = await library.tradeoff(query).catch(() => null);       // without a curve, the answer stands alone
    if (!wanted()) return;
    if (curve) {
      const {alpha, beta_lower: lower, beta_upper: upper} = curve;
      const points = alpha.map((x, i) => ({x, ...(upper ? {upper: upper[i]} : {}), lower: lower[i], none: 1 - x}));
      const drawn = figure("Trade-off function", ["false-positive rate", "false-negative rate"], points, false);
      const missed = Math.floor(1e4 * lower[alpha.indexOf(0.1)]) / 100;
      const text = `At a false-positive rate of 10\u00a0%, every attack has a false-negative rate of at least ${missed}\u00a0%.`;
      drawn.append(make("p", {}, text));
      slots[1].append(drawn);
    }
    const users = Number(query.users?.replaceAll("_", "")), points = [];
    // from the middle outwards, so that the part around the answer is seen first
    for (const step of [0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6, 7, -7, 8, -8]) {
      const x = Math.round(users * 10 ** (step / 4));
      if (!(x >= 1 && x <= 2 ** 53) || points.some((point) => point.x === x)) continue;
      const told = await library.answer({...query, users: String(x)}).catch(() => null);       // too few users, for example
      if (!wanted()) return;
      if (told) points.push({x, ...told[query.question]});
      points.sort((a, b) => a.x - b.x);
      slots[0].replaceChildren(figure("Over the number of users", ["users", SYMBOLS[query.question]], points, true) ?? "");
    }
  }

  (async () => {
    fields = await (await fetch(`${place.dataset.files}calculator_fields.json`)).json();
    await library.ready?.(place.dataset.files, fields);
    const given = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    addEventListener("hashchange", () => show(given()));
    show(given());
  })();
})();
