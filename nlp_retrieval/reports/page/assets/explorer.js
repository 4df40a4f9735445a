// Any two lists of any query, side by side. What users named goes in as text, never as markup.
(() => {
  "use strict";
  const block = document.getElementById("explorer-data");
  const root = document.getElementById("explorer");
  const note = document.getElementById("explorer-note");
  if (!block || !root || !note) {
    return;
  }
  const element = (name) => document.getElementById(`explorer-${name}`);
  const one = element("one");
  const other = element("other");
  const cutoff = element("cutoff");
  const order = element("order");
  const measure = element("measure");
  const group = element("group");
  const search = element("search");
  const list = element("queries");
  const shown = element("shown");
  const AT_ONCE = 300;
  let data;
  let planes;
  let found = [];
  let selected = 0;
  let firstDrawn = 0;
  let written = "";

  async function opened() {
    if (typeof DecompressionStream === "undefined") {
      throw new Error("it has no DecompressionStream");
    }
    const packed = Uint8Array.from(atob(block.textContent), (character) => character.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    const begin = 4 + new DataView(bytes.buffer).getUint32(0, true);
    planes = bytes.subarray(begin);
    return JSON.parse(new TextDecoder().decode(bytes.subarray(4, begin)));
  }

  // four planes of bytes: exponents, upper and lower, then mantissas
  function numberAt(place) {
    const count = planes.length / 4;
    const [exponent, mantissa] = [0, 2].map(
      (plane) => (((planes[plane * count + place] << 8) | planes[(plane + 1) * count + place]) << 16) >> 16,
    );
    return exponent === -32768 ? null : Number(`${mantissa}e${exponent}`);
  }

  // where the numbers of each query begin in each stream
  function locate() {
    const at = [];
    data.streams.reduce((begin, count) => (at.push(begin), begin + count), 0);
    for (const query of data.lists) {
      query.at = [...at];
      for (const key of query.shared) {
        at[key + 1] += query.pool.length;
      }
      query.own.forEach(([places, apart], configuration) => {
        at[0] += places.length;
        for (const position of apart) {
          at[data.has[configuration][position] + 1] += places.length;
        }
      });
    }
  }

  function make(tag, attributes, ...content) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      made.setAttribute(name, value);
    }
    made.append(...content);
    return made;
  }

  const named = (text) => make("bdi", {}, text);

  // --- what the data says

  function sideOf(query, configuration) {
    const { pool, shared, own, at } = data.lists[query];
    const [places] = own[configuration];
    const next = [...at];
    const read = (stream, count) => {
      next[stream] += count;
      return Array.from({ length: count }, (_, place) => numberAt(next[stream] - count + place));
    };
    const common = new Map(shared.map((key) => [key, read(key + 1, pool.length)]));
    let scores = [];
    const apart = new Map();
    own.slice(0, configuration + 1).forEach(([hits, differing], number) => {
      scores = read(0, hits.length);
      apart.clear();
      for (const position of differing) {
        const key = data.has[number][position];
        apart.set(key, read(key + 1, hits.length));
      }
    });
    const signals = new Map(
      data.has[configuration].map((key) => [
        data.signals[key],
        apart.get(key) ?? places.map((place) => common.get(key)[place]),
      ]),
    );
    const ranks = new Map(places.map((place, position) => [pool[place], position + 1]));
    return { items: places.map((place) => pool[place]), ranks, scores, signals, within: (item, k) => ranks.get(item) <= k };
  }

  function signalOf(side, name, item) {
    const rank = side.ranks.get(item);
    if (rank === undefined) {
      return { said: "not in this list" };
    }
    const column = side.signals.get(name);
    if (column === undefined) {
      return { said: "no such signal" };
    }
    const value = column[rank - 1];
    if (value === null) {
      return { said: "not found by it" };
    }
    const ranked = name.endsWith(".score") ? side.signals.get(`${name.slice(0, -6)}.rank`)?.[rank - 1] : undefined;
    if (ranked !== undefined && ranked !== null) {
      return { value, rank: ranked };
    }
    if (name.endsWith(".rank")) {
      return { value, rank: value };
    }
    return { value, rank: 1 + column.filter((another) => another !== null && another > value).length };
  }

  function toldByScore(name, sides) {
    const score = `${name.slice(0, -5)}.score`;
    return name.endsWith(".rank") && sides.every((side) => !side.signals.has(name) || side.signals.has(score));
  }

  function valueOf(query, configuration) {
    return data.values[Number(measure.value)]?.[configuration][query] ?? null;
  }

  function gain(query) {
    const [before, after] = [valueOf(query, Number(one.value)), valueOf(query, Number(other.value))];
    return before === null || after === null ? null : Math.round((after - before) * 1e4) / 1e4;
  }

  function entered(query) {
    const k = Number(cutoff.value);
    const [before, after] = [one, other].map((choice) => data.lists[query].own[Number(choice.value)][0].slice(0, k));
    return after.filter((place) => !before.includes(place)).length;
  }

  // --- text of figures

  const signed = (difference, digits = 3) => {
    const text = Math.abs(difference).toFixed(digits);
    return `${Number(text) === 0 ? "±" : difference > 0 ? "+" : "\u2212"}${text}`;
  };
  const figure = (value) => (value === null ? "\u2013" : value.toFixed(3));

  // --- the list of queries

  function choose() {
    const words = search.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    found = [];
    for (let query = 0; query < data.queries.length; query += 1) {
      const text = `${data.queries[query]} ${data.texts[query]}`.toLocaleLowerCase();
      if ((group.value === "" || data.groups[query] === group.value) && words.every((word) => text.includes(word))) {
        found.push({ query, gain: gain(query), entered: entered(query) });
      }
    }
    const by = {
      change: (row) => -Math.abs(row.gain ?? 0),
      gain: (row) => -(row.gain ?? 0),
      loss: (row) => row.gain ?? 0,
      run: () => 0,
    }[order.value];
    found.sort((a, b) => by(a) - by(b) || (order.value === "run" ? 0 : b.entered - a.entered) || a.query - b.query);
  }

  function change(row) {
    if (row.gain === null) {
      return make("span", { class: "chance" }, "no gold");
    }
    const [kind, mark] = row.gain > 0 ? ["better", "\u2191 "] : row.gain < 0 ? ["worse", "\u2193 "] : ["chance", ""];
    return make("span", { class: `change ${kind}` }, mark + signed(row.gain, 2));
  }

  function drawQueries() {
    const at = Math.max(0, found.findIndex((row) => row.query === selected));
    firstDrawn = Math.max(0, Math.min(at - AT_ONCE / 2, found.length - AT_ONCE));
    const drawn = found.slice(firstDrawn, firstDrawn + AT_ONCE);
    list.replaceChildren(
      ...drawn.map((row, place) => {
        const id = `explorer-query-${row.query}`;
        const about = [data.queries[row.query], data.groups[row.query]].filter(Boolean).join(" \u00b7 ");
        const moved = row.entered ? `, ${row.entered} entered` : "";
        const option = make(
          "li",
          { role: "option", id, "aria-setsize": found.length, "aria-posinset": firstDrawn + place + 1, "aria-selected": false },
          make("span", { class: "text", dir: "auto" }, data.texts[row.query] || data.queries[row.query]),
          make("span", { class: "about" }, change(row), moved, " \u00b7 ", named(about)),
        );
        option.addEventListener("click", () => select(row.query, true));
        return option;
      }),
    );
    const all = data.queries.length.toLocaleString("en");
    const some = found.length.toLocaleString("en");
    const part = found.length > drawn.length ? `; ${drawn.length} of them are listed, type to narrow them down` : "";
    element("count").textContent = `${found.length === data.queries.length ? all : `${some} of ${all}`} queries${part}`;
    mark();
  }

  function mark() {
    for (const option of list.querySelectorAll('[aria-selected="true"]')) {
      option.setAttribute("aria-selected", "false");
    }
    const option = element(`query-${selected}`);
    for (const field of [search, list]) {
      field.removeAttribute("aria-activedescendant");
    }
    if (!option) {
      return;
    }
    option.setAttribute("aria-selected", "true");
    for (const field of [search, list]) {
      field.setAttribute("aria-activedescendant", option.id);
    }
    const [top, bottom] = [option.offsetTop, option.offsetTop + option.offsetHeight];
    if (top < list.scrollTop) {
      list.scrollTop = top;
    } else if (bottom > list.scrollTop + list.clientHeight) {
      list.scrollTop = bottom - list.clientHeight;
    }
  }

  function select(query, chosen) {
    selected = query;
    const at = found.findIndex((row) => row.query === query);
    if (at >= 0 && (at < firstDrawn || at >= firstDrawn + AT_ONCE)) {
      drawQueries();
    } else {
      mark();
    }
    drawLists();
    if (chosen) {
      remember();
    }
  }

  function step(event) {
    const at = found.findIndex((row) => row.query === selected);
    const last = found.length - 1;
    const page = 10;
    const inText = event.currentTarget === search;
    const target = {
      ArrowDown: at + 1,
      ArrowUp: at < 0 ? last : at - 1,
      PageDown: at + page,
      PageUp: at - page,
      ...(inText ? {} : { Home: 0, End: last }),
    }[event.key];
    if (target === undefined || event.altKey || event.ctrlKey || event.metaKey || last < 0) {
      return;
    }
    event.preventDefault();
    select(found[Math.max(0, Math.min(target, last))].query, true);
  }

  // --- two lists side by side

  function tag(kind, ...content) {
    return make("span", { class: `tag ${kind}` }, ...content);
  }

  function movement(item, k, sides, isOther) {
    const [mine, theirs] = (isOther ? [1, 0] : [0, 1]).map((side) => sides[side].ranks.get(item));
    if (theirs === undefined || theirs > k) {
      const where = theirs === undefined ? "" : `, ${isOther ? "from" : "to"} ${theirs}`;
      return isOther ? tag("entered", `+ entered${where}`) : tag("left", `\u2212 left${where}`);
    }
    if (mine === theirs) {
      return tag("same", "same rank");
    }
    const up = isOther ? mine < theirs : theirs < mine;
    const arrow = up ? "\u2191 up" : "\u2193 down";
    return tag(up ? "up" : "down", `${arrow} ${Math.abs(mine - theirs)}, ${isOther ? "from" : "to"} ${theirs}`);
  }

  function comparedWith(mine, theirs) {
    if (mine.value === undefined) {
      return theirs.value === undefined ? "" : "only in second";
    }
    if (theirs.value === undefined) {
      return "only in first";
    }
    const up = mine.rank - theirs.rank;
    return up === 0 ? "same rank" : `${up > 0 ? "\u2191 up" : "\u2193 down"} ${Math.abs(up)}`;
  }

  const standing = (signal) => (signal.value === undefined ? signal.said : signal.rank);

  function signalRow(label, mine, theirs) {
    const cells = [mine, theirs].map((signal) =>
      signal.value === undefined
        ? make("td", { class: "missing" }, signal.said)
        : make("td", {}, make("b", {}, String(signal.value)), make("small", {}, ` rank ${signal.rank}`)),
    );
    const moved = standing(mine) !== standing(theirs);
    const said = make("td", { class: moved ? "said moved" : "said" }, comparedWith(mine, theirs));
    return make("tr", {}, make("th", { scope: "row" }, named(label)), ...cells, said);
  }

  function signalTable(item, sides) {
    const keys = [...new Set(sides.flatMap((one) => [...one.signals.keys()]))].filter((key) => !toldByScore(key, sides));
    const rows = keys
      .map((key) => [key, ...sides.map((one) => signalOf(one, key, item))])
      .filter(([, ...both]) => both.some((signal) => signal.value !== undefined));
    const scored = sides.map((one) => {
      const rank = one.ranks.get(item);
      return rank === undefined ? { said: "not in this list" } : { value: one.scores[rank - 1], rank };
    });
    const heads = ["signal", "first list", "second list", "change"].map((head) => make("th", { scope: "col" }, head));
    return make(
      "div",
      { class: "scroll" },
      make(
        "table",
        { class: "signals" },
        make("thead", {}, make("tr", {}, ...heads)),
        make(
          "tbody",
          {},
          signalRow("final score", ...scored),
          ...rows.map(([key, mine, theirs]) => signalRow(key, mine, theirs)),
        ),
      ),
    );
  }

  function name(item) {
    return [
      make("strong", { dir: "auto" }, data.titles[item] || data.ids[item]),
      ...(data.titles[item] ? [" ", make("span", { class: "id" }, named(data.ids[item]))] : []),
    ];
  }

  function hit(item, grade, k, sides, isOther) {
    const label = [
      make("span", { class: "rank" }, String(sides[isOther ? 1 : 0].ranks.get(item))),
      make("span", { class: "what" }, ...name(item)),
      make("span", { class: "tags" }, ...(grade ? [goldTag(grade)] : []), movement(item, k, sides, isOther)),
    ];
    const kind = grade ? "hit gold" : "hit";
    if (!sides.some((one) => one.signals.size)) {
      return make("li", { class: kind }, make("div", { class: "line" }, ...label));
    }
    const details = make("details", {}, make("summary", { class: "line" }, ...label));
    details.addEventListener("toggle", () => details.childElementCount > 1 || details.append(signalTable(item, sides)));
    return make("li", { class: kind }, details);
  }

  function goldTag(grade) {
    return tag("is-gold", grade > 1 ? `\u2605 gold, grade ${grade}` : "\u2605 gold");
  }

  function drawList(which, k, sides, names, grades) {
    const items = sides[which].items.slice(0, k);
    const title = `explorer-list-${which}`;
    const rows = items.map((item) => hit(item, grades.get(item), k, sides, which === 1));
    const inside = items.filter((item) => grades.has(item)).length;
    const content = rows.length ? make("ol", { role: "list" }, ...rows) : make("p", { class: "note" }, "Nothing was found.");
    return make(
      "section",
      { "aria-labelledby": title },
      make("h4", { id: title }, which ? "to " : "from ", named(names[which])),
      make("p", { class: "note" }, `${inside} of ${grades.size} gold in the first ${k}`),
      content,
    );
  }

  function measureTable(names, configurations) {
    const heads = data.measures.map((key) => make("th", { scope: "col" }, key.replaceAll("_", " ")));
    const rows = configurations.map((configuration, place) =>
      make(
        "tr",
        {},
        make("th", { scope: "row" }, named(names[place])),
        ...data.values.map((values) => make("td", {}, figure(values[configuration][selected]))),
      ),
    );
    const differences = data.values.map((values) => {
      const [before, after] = configurations.map((configuration) => values[configuration][selected]);
      return make("td", {}, before === null || after === null ? "\u2013" : signed(after - before));
    });
    const last = make("tr", { class: "differences" }, make("th", { scope: "row" }, "difference"), ...differences);
    const head = make("tr", {}, make("th", { scope: "col" }, "this query"), ...heads);
    const table = make("table", { class: "signals" }, make("thead", {}, head), make("tbody", {}, ...rows, last));
    return make("div", { class: "scroll" }, table);
  }

  function drawMissed(missed, k, sides, names) {
    if (!missed.length) {
      return [];
    }
    const rows = missed.map((item) => {
      const where = sides.flatMap((one, place) =>
        one.ranks.has(item) ? [` \u00b7 rank ${one.ranks.get(item)} in `, named(names[place])] : [],
      );
      return make("li", {}, "\u2605 ", ...name(item), ...where);
    });
    return [
      make("h4", {}, `Gold that neither has in its first ${k}`),
      make("ul", { class: "missed" }, ...rows),
    ];
  }

  function drawLists() {
    const k = Number(cutoff.value);
    const configurations = [Number(one.value), Number(other.value)];
    const names = configurations.map((configuration) => data.configurations[configuration]);
    const sides = configurations.map((configuration) => sideOf(selected, configuration));
    const { pool, gold, grades: given } = data.lists[selected];
    const grades = new Map(gold.map((place, position) => [pool[place], given[position]]));
    const missed = [...grades.keys()].filter((item) => !sides.some((one) => one.within(item, k)));
    const facts = [data.queries[selected], data.groups[selected]].filter(Boolean).map((fact) => make("li", {}, named(fact)));
    shown.replaceChildren(
      make("p", { class: "asked", dir: "auto" }, data.texts[selected] || data.queries[selected]),
      make("ul", { class: "facts" }, ...facts),
      ...(data.measures.length ? [measureTable(names, configurations)] : []),
      make("div", { class: "lists" }, ...[0, 1].map((which) => drawList(which, k, sides, names, grades))),
      ...drawMissed(missed, k, sides, names),
    );
  }

  // --- what can be shared: the two configurations, the query and the cutoff, in the address

  function remember() {
    const state = new URLSearchParams({
      from: data.configurations[Number(one.value)],
      to: data.configurations[Number(other.value)],
      query: data.queries[selected],
      first: cutoff.value,
    });
    location.replace(`#${state}`);
    written = location.hash;
  }

  function recall() {
    const state = new URLSearchParams(location.hash.slice(1));
    const [from, to] = ["from", "to"].map((key) => data.configurations.indexOf(state.get(key)));
    const query = data.queries.indexOf(state.get("query"));
    if (from < 0 || to < 0 || query < 0) {
      return false;
    }
    one.value = from;
    other.value = to;
    if (data.cutoffs.map(String).includes(state.get("first"))) {
      cutoff.value = state.get("first");
    }
    selected = query;
    return true;
  }

  function redraw(chosen) {
    choose();
    drawQueries();
    drawLists();
    if (chosen) {
      remember();
    }
  }

  // another order is read from its beginning
  function reorder() {
    choose();
    if (found.length) {
      selected = found[0].query;
    }
    drawQueries();
    drawLists();
    remember();
  }

  function filter() {
    choose();
    if (found.length && !found.some((row) => row.query === selected)) {
      selected = found[0].query;
      drawLists();
      remember();
    }
    drawQueries();
  }

  function fill(choice, labels, values) {
    choice.replaceChildren(...labels.map((label, place) => make("option", { value: values ? values[place] : place }, label)));
  }

  function start(content) {
    data = content;
    block.remove();
    locate();
    fill(one, data.configurations);
    fill(other, data.configurations);
    fill(cutoff, data.cutoffs.map(String), data.cutoffs);
    fill(measure, data.measures.map((key) => key.replaceAll("_", " ")));
    const groups = [...new Set(data.groups.filter((name) => name !== null))];
    fill(group, ["all", ...groups], ["", ...groups]);
    group.closest("label").hidden = groups.length < 2;
    measure.closest("label").hidden = !data.measures.length;
    const baseline = Math.max(0, data.configurations.indexOf(root.dataset.baseline));
    one.value = baseline;
    other.value = baseline === 0 ? 1 : 0;
    cutoff.value = data.depth;
    const whole = data.measures.filter((key) => key.startsWith("recall@") && Number(key.slice(7)) <= data.depth);
    measure.value = Math.max(0, data.measures.indexOf(whole.at(-1)));
    const given = recall();
    choose();
    if (!given) {
      selected = found[0].query;
    }
    for (const choice of [one, other, cutoff]) {
      choice.addEventListener("change", () => redraw(true));
    }
    for (const choice of [order, measure]) {
      choice.addEventListener("change", reorder);
    }
    for (const field of [search, list]) {
      field.addEventListener("keydown", step);
    }
    group.addEventListener("change", filter);
    search.addEventListener("input", filter);
    element("swap").addEventListener("click", () => {
      [one.value, other.value] = [other.value, one.value];
      redraw(true);
    });
    window.addEventListener("hashchange", () => {
      if (location.hash !== written && recall()) {
        redraw(false);
      }
    });
    note.hidden = true;
    root.hidden = false;
    redraw(false);
    if (given) {
      root.closest("section").querySelector("#explorer-title").scrollIntoView();
    }
  }

  opened().then(start).catch((error) => {
    root.hidden = true;
    note.hidden = false;
    note.textContent =
      `This browser cannot open the lists of the queries (${error.message}). ` +
      "Use one from 2023 or later, or the command nlp-retrieval explain.";
  });
})();
