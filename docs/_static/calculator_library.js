/* Answers the calculator's questions on the site, where no Python runs, by the C library as WebAssembly: clone bounds of one
 * release and log tails. Any other question raises an error with the property `unanswered`; the page shows the line of Python. */
"use strict";

(() => {
  const CLONES = {clones: 0, "stronger-clones": 1};
  const PLAIN = ["question", "mechanism", "users", "local_eps", "eps", "delta"];
  const elsewhere = () => Object.assign(
    new Error("This page answers for clone bounds and log tails. Python answers this question:"), {unanswered: true});
  let c, at, fields;

  async function ready(files, known) {
    fields = known;
    try {
      const bytes = await (await fetch(`${files}shufflebounds.wasm`)).arrayBuffer();
      c = (await WebAssembly.instantiate(bytes)).instance.exports;
      c._initialize();
      at = c.memory.grow(1) * 65536;         // a page for results, beyond what the library uses
    } catch {
      c = null;                              // not built, or no WebAssembly
    }
  }

  function number(query, name) {
    const value = Number(query[name].replaceAll("_", ""));
    if (Number.isNaN(value) && query[name].trim() !== "nan") throw new Error(`${name}: '${query[name]}' is not a number`);
    return value;
  }

  /* Returns both bounds of log delta. */
  function logDelta(users, local, eps, stronger) {
    c.sb_clones_log_delta(users, local, eps, stronger, at, at + 8);
    const [lower, upper] = new Float64Array(c.memory.buffer, at, 2);
    return {upper, lower};
  }

  /* Returns the least number of users with this upper bound of delta, by bisection. */
  function fewest(local, eps, delta, stronger) {
    const meets = (users) => logDelta(users, local, eps, stronger).upper <= Math.log(delta);
    let low = 0, high = 1;
    while (!meets(high)) {
      if (high === 2 ** 53) throw new Error(`delta=${delta} at eps=${eps} needs more than 2**53 users`);
      [low, high] = [high, 2 * high];
    }
    while (high - low > 1) {
      const middle = Math.floor(0.5 * (low + high));
      if (meets(middle)) high = middle; else low = middle;
    }
    return high;
  }

  const inside = (name, value, valid, where) => { if (!valid) throw new Error(`${name}=${value} must be ${where}`); };

  /* Returns the numbers of a question about clones, checked. */
  function checked(query) {
    const more = Object.keys(query).some((name) => !PLAIN.includes(name));
    if (!c || !(query.mechanism in CLONES) || query.question === "calibrate" || more) throw elsewhere();
    const given = {};
    for (const name of PLAIN.slice(2)) if (name in query) given[name] = number(query, name);
    const {users = 1, local_eps: local, eps = 1, delta = 0.5} = given;
    inside("users", users, Number.isInteger(users) && users >= 1 && users <= 2 ** 53, "an integer in 1..2**53");
    inside("local_eps", local, local > 0 && local <= 700, "in (0, 700]");
    const target = query.question === "users";
    inside("eps", eps, eps < Infinity && (target ? eps > 0 : eps >= 0), `finite and ${target ? ">" : ">="} 0`);
    inside("delta", delta, target ? delta > 0 && delta < 1 : delta >= 0 && delta <= 1, target ? "in (0, 1)" : "in [0, 1]");
    if (delta === 0) throw elsewhere();
    return {...given, stronger: CLONES[query.mechanism]};
  }

  /* Returns the bounds of delta and of log delta; an upper bound is not rounded to 0. */
  const deltas = (logs) => ({
    delta: {
      upper: logs.upper === -Infinity ? 0 : Math.min(1, Math.exp(logs.upper) * (1 + 4e-16) + Number.MIN_VALUE),
      lower: Math.exp(logs.lower) * (1 - 4e-16),
    },
    log_delta: logs,
  });

  async function answer(query) {
    if (query.question === "tail") {
      if (!c) throw elsewhere();
      const name = query.mechanism, given = Object.keys(fields.tails[name].options).map((argument) => number(query, argument));
      const value = c[`sb_${name}`](...given);
      if (Number.isNaN(value)) throw new Error(`${name} is not defined for these numbers: an argument lies outside its domain`);
      return {value};
    }
    const {stronger, ...given} = checked(query), {users, local_eps: local, eps, delta} = given;
    const known = {parameters: given, ...fields.told[query.mechanism]};
    if (query.question === "delta") return {...known, ...deltas(logDelta(users, local, eps, stronger))};
    if (query.question === "users") {
      const most = fewest(local, eps, delta, stronger);
      const parameters = {users: most, local_eps: local, target_eps: eps, target_delta: delta};
      return {...known, parameters, ...deltas(logDelta(most, local, eps, stronger))};
    }
    const bound = (upper) => c.sb_clones_epsilon(users, local, delta, stronger, upper);
    return {...known, epsilon: {upper: bound(1), lower: bound(0)}};
  }

  /* Returns a lower bound of the trade-off function: the lines under it at a grid of eps. */
  async function tradeoff(query) {
    const {users, local_eps: local, stronger} = checked(query);
    const lines = Array.from({length: 200}, (_, i) => local * 10 ** (-6 * i / 199)).concat(0).map((eps) => {
      const delta = Math.exp(logDelta(users, local, eps, stronger).upper);
      return [1 - delta, Math.exp(eps)];
    });
    const alpha = Array.from({length: 51}, (_, i) => i / 50);
    const below = (x) => Math.max(0, ...lines.flatMap(([top, slope]) => [top - slope * x, (top - x) / slope]));
    return {alpha, beta_lower: alpha.map(below)};
  }

  window.shuffleboundsLibrary = {ready, answer, tradeoff};
})();
