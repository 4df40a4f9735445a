// Any two lists of any query side by side: what is chosen, what moved, and the address that says it.
(() => {
  "use strict";
  const element = (name) => document.getElementById(`explorer-${name}`);
  const root = document.getElementById("explorer");
  const block = element("data");
  if (!root || !block) {
    return;
  }
  const [one, other, measure, order, search, list] = ["one", "other", "measure", "order", "search", "queries"].map(element);
  const named = (text) => make("bdi", {}, text);
  let data;

  function signed(difference, digits) {
    const text = Math.abs(difference).toFixed(digits);
    return `${Number(text) === 0 ? "±" : difference > 0 ? "+" : "\u2212"}${text}`;
  }

  function gainOf(query) {
    const [before, after] = [one, other].map((choice) => data.values[measure.value][choice.value][query]);
    return before === null || after === null ? null : Math.round((after - before) * 1e4) / 1e4;
  }

  function fill(choice, labels) {
    choice.replaceChildren(...labels.map((label, place) => make("option", { value: place }, label)));
  }

  // the queries with all words of the search in their id, text or group, in the chosen order; the current one stays if it is there
  function drawQueries() {
    const words = search.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    const rows = data.queries
      .map((id, query) => ({ query, gain: gainOf(query), said: `${id} ${data.texts[query]} ${data.groups[query]}` }))
      .filter(({ said }) => words.every((word) => said.toLocaleLowerCase().includes(word)));
    const by = { change: (row) => -Math.abs(row.gain ?? 0), gain: (row) => -(row.gain ?? 0), loss: (row) => row.gain ?? 0 }[order.value];
    if (by) {
      rows.sort((a, b) => by(a) - by(b) || a.query - b.query);
    }
    const before = list.value;
    list.replaceChildren(
      ...rows.map(({ query, gain }) => {
        const change = gain === null ? "no gold" : signed(gain, 2);
        return make("option", { value: query }, `${change}  ${data.texts[query] || data.queries[query]}`);
      }),
    );
    list.value = before;
    if (list.selectedIndex < 0) {
      list.selectedIndex = 0;
    }
    const count = (test) => rows.filter(({ gain }) => gain !== null && test(gain)).length;
    const outcome = `${count((gain) => gain > 0)} won, ${count((gain) => gain === 0)} tied, ${count((gain) => gain < 0)} lost`;
    element("count").textContent = `${rows.length} of ${data.queries.length} queries: ${outcome}`;
  }

  function side(query, configuration) {
    const [items, scores, ...signals] = data.lists[query][configuration];
    return { items, ranks: new Map(items.map((item, place) => [item, place + 1])), columns: [scores, ...signals] };
  }

  // a text with the words of the query marked; words of three letters or fewer are too common
  function marked(text, query) {
    const WORD = /[\p{L}\p{N}\p{M}]+/gu;
    const words = new Set([...data.texts[query].toLocaleLowerCase().matchAll(WORD)].map(([word]) => word).filter((word) => word.length > 3));
    const drawn = [];
    let done = 0;
    for (const found of text.matchAll(WORD)) {
      if (words.has(found[0].toLocaleLowerCase())) {
        drawn.push(text.slice(done, found.index), make("mark", {}, found[0]));
        done = found.index + found[0].length;
      }
    }
    return make("span", { class: "snippet", dir: "auto" }, ...drawn, text.slice(done));
  }

  function titleOf(item) {
    const { ids, titles } = data;
    const id = titles[item] && titles[item] !== ids[item] ? [" ", make("span", { class: "id" }, named(ids[item]))] : [];
    return [make("strong", { dir: "auto" }, titles[item] || ids[item]), ...id];
  }

  function movement(item, which, sides) {
    const [mine, theirs] = [which, 1 - which].map((place) => sides[place].ranks.get(item));
    if (theirs === undefined) {
      return which ? "+ entered" : "\u2212 left";
    }
    if (mine === theirs) {
      return "same rank";
    }
    const up = which ? mine < theirs : theirs < mine;
    return `${up ? "\u2191 up" : "\u2193 down"} ${Math.abs(mine - theirs)}, ${which ? "from" : "to"} ${theirs}`;
  }

  function signalsOf(item, sides) {
    const valueOf = ({ ranks, columns }, column) => columns[column]?.[ranks.get(item) - 1] ?? "\u2013";
    const rows = ["final score", ...data.signals].map((name, column) => [name, ...sides.map((each) => valueOf(each, column))]);
    const told = rows.filter(([, ...values]) => values.some((value) => value !== "\u2013"));
    const drawn = [["signal", "first list", "second list"], ...told].map(([name, ...values]) =>
      make("tr", {}, make("th", { scope: "row" }, named(name)), ...values.map((value) => make("td", {}, String(value)))),
    );
    return make("table", { class: "signals" }, make("tbody", {}, ...drawn));
  }

  function hit(item, which, sides, query) {
    const grade = data.gold[query][item];
    const tags = [...(grade ? [make("span", { class: "is-gold" }, `\u2605 gold${grade > 1 ? `, grade ${grade}` : ""}`)] : [])];
    tags.push(make("span", { class: "moved" }, movement(item, which, sides)));
    const line = [
      make("span", { class: "rank" }, String(sides[which].ranks.get(item))),
      make("span", { class: "what" }, ...titleOf(item)),
      make("span", { class: "tags" }, ...tags),
      ...(data.passages[item] ? [marked(data.passages[item], query)] : []),
    ];
    const kind = grade ? "hit gold" : "hit";
    if (!data.signals.length) {
      return make("li", { class: kind }, make("div", { class: "line" }, ...line));
    }
    const details = make("details", {}, make("summary", { class: "line" }, ...line));
    details.addEventListener("toggle", () => details.childElementCount > 1 || details.append(signalsOf(item, sides)));
    return make("li", { class: kind }, details);
  }

  function drawLists() {
    const query = Number(list.value);
    const choices = [one, other];
    const sides = choices.map((choice) => side(query, choice.value));
    const gold = Object.keys(data.gold[query]).map(Number);
    const columns = sides.map(({ items, ranks }, which) => {
      const figures = data.measures.map((key, place) => [key, data.values[place][choices[which].value][query]]);
      const said = figures.filter(([, value]) => value !== null).map(([key, value]) => `${key} ${value.toFixed(3)}`);
      const inside = gold.filter((item) => ranks.has(item)).length;
      return make(
        "section",
        {},
        make("h3", {}, which ? "to " : "from ", named(data.configurations[choices[which].value])),
        make("p", { class: "note" }, [`${inside} of ${gold.length} gold`, ...said].join(" \u00b7 ")),
        items.length ? make("ol", { role: "list" }, ...items.map((item) => hit(item, which, sides, query))) : "Nothing was found.",
      );
    });
    const missed = gold.filter((item) => !sides.some(({ ranks }) => ranks.has(item)));
    const about = [data.queries[query], data.groups[query]].filter(Boolean).join(" \u00b7 ");
    element("shown").replaceChildren(
      make("p", { class: "asked", dir: "auto" }, data.texts[query] || data.queries[query]),
      make("p", { class: "note" }, named(about)),
      make("div", { class: "lists" }, ...columns),
    );
    if (missed.length) {
      const rows = missed.map((item) => make("li", {}, "\u2605 ", ...titleOf(item)));
      element("shown").append(make("h3", {}, "Gold that neither has"), make("ul", { class: "missed" }, ...rows));
    }
  }

  // what can be shared stands in the address: the two configurations and the query
  function remember() {
    const [from, to] = [one, other].map((choice) => data.configurations[choice.value]);
    history.replaceState(null, "", `#${new URLSearchParams({ from, to, query: data.queries[list.value] })}`);
  }

  function recall() {
    const given = new URLSearchParams(location.hash.slice(1));
    const [from, to] = ["from", "to"].map((key) => data.configurations.indexOf(given.get(key)));
    const query = data.queries.indexOf(given.get("query"));
    if (from < 0 || to < 0 || query < 0) {
      return false;
    }
    [one.value, other.value, search.value] = [from, to, ""];
    drawQueries();
    list.value = query;
    drawLists();
    return true;
  }

  function redraw(first) {
    drawQueries();
    if (first && list.length) {
      list.selectedIndex = 0;
    }
    if (list.length) {
      drawLists();
      remember();
    }
  }

  function start(content) {
    data = content;
    block.remove();
    fill(one, data.configurations);
    fill(other, data.configurations);
    fill(measure, data.measures);
    one.value = Math.max(0, data.configurations.indexOf(root.dataset.baseline));
    other.value = Math.max(0, data.configurations.indexOf(root.dataset.best));
    [one, other].forEach((choice) => choice.addEventListener("change", () => redraw(false)));
    [measure, order].forEach((choice) => choice.addEventListener("change", () => redraw(true)));
    search.addEventListener("input", () => redraw(false));
    list.addEventListener("change", () => {
      drawLists();
      remember();
    });
    element("swap").addEventListener("click", () => {
      [one.value, other.value] = [other.value, one.value];
      redraw(false);
    });
    window.addEventListener("hashchange", recall);
    element("note").hidden = true;
    root.hidden = false;
    if (recall()) {
      document.getElementById("why").scrollIntoView();
    } else {
      drawQueries();
      drawLists();
    }
    root.dataset.ready = "true";
  }

  async function opened() {
    if (typeof DecompressionStream === "undefined") {
      throw new Error("it has no DecompressionStream");
    }
    const bytes = Uint8Array.from(atob(block.textContent), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).json();
  }

  opened().then(start).catch((error) => {
    root.hidden = true;
    element("note").hidden = false;
    element("note").textContent =
      `This browser cannot open the lists of the queries (${error.message}). ` +
      "Use one from 2023 or later, or the command nlp-retrieval diff.";
  });
})();
