// Two lists of one query side by side: what stands in both, what moved, and by which signals.
const tag = (kind, ...content) => make("span", { class: `tag ${kind}` }, ...content);
const goldTag = (grade) => tag("is-gold", grade > 1 ? `\u2605 gold, grade ${grade}` : "\u2605 gold");

class SideBySide {
  // passages: the texts of what was found; null where there are none
  constructor(data, query, configurations, k, passages) {
    Object.assign(this, { data, query, configurations, k, passages });
    this.names = configurations.map((configuration) => data.configurations[configuration]);
    this.sides = configurations.map((configuration) => data.side(query, configuration));
    this.grades = data.grades(query);
  }

  drawn() {
    const { data, query } = this;
    const facts = [data.queries[query], data.groups[query]].filter(Boolean).map((fact) => make("li", {}, named(fact)));
    return [
      make("p", { class: "asked", dir: "auto" }, data.texts[query] || data.queries[query]),
      make("ul", { class: "facts" }, ...facts),
      ...(data.measures.length ? [this.measures()] : []),
      make("div", { class: "lists" }, ...[0, 1].map((which) => this.list(which))),
      ...this.missed(),
    ];
  }

  measures() {
    const { data, configurations, query } = this;
    const heads = data.measures.map((key) => make("th", { scope: "col" }, key.replaceAll("_", " ")));
    const rows = configurations.map((configuration, place) =>
      make(
        "tr",
        {},
        make("th", { scope: "row" }, named(this.names[place])),
        ...data.values.map((values) => make("td", {}, figure(values[configuration][query]))),
      ),
    );
    const differences = data.values.map((values) => {
      const [before, after] = configurations.map((configuration) => values[configuration][query]);
      return make("td", {}, before === null || after === null ? "\u2013" : signed(after - before));
    });
    const last = make("tr", { class: "differences" }, make("th", { scope: "row" }, "difference"), ...differences);
    const head = make("tr", {}, make("th", { scope: "col" }, "this query"), ...heads);
    const table = make("table", { class: "signals" }, make("thead", {}, head), make("tbody", {}, ...rows, last));
    return make("div", { class: "scroll", role: "group", "aria-label": "Measures of this query", tabindex: 0 }, table);
  }

  list(which) {
    const items = this.sides[which].items.slice(0, this.k);
    const title = `explorer-list-${which}`;
    const rows = items.map((item) => this.hit(item, which));
    const inside = items.filter((item) => this.grades.has(item)).length;
    const content = rows.length ? make("ol", { role: "list" }, ...rows) : make("p", { class: "note" }, "Nothing was found.");
    return make(
      "section",
      { "aria-labelledby": title },
      make("h4", { id: title }, which ? "to " : "from ", named(this.names[which])),
      make("p", { class: "note" }, `${inside} of ${this.grades.size} gold in the first ${this.k}`),
      content,
    );
  }

  hit(item, which) {
    const grade = this.grades.get(item);
    const label = [
      make("span", { class: "rank" }, String(this.sides[which].ranks.get(item))),
      make("span", { class: "what" }, ...this.name(item)),
      make("span", { class: "tags" }, ...(grade ? [goldTag(grade)] : []), this.movement(item, which)),
    ];
    const kind = grade ? "hit gold" : "hit";
    const asked = this.data.texts[this.query];
    const told = this.passages?.of(item);
    if (told) {
      label.push(this.passages.snippet(item, asked));
    }
    const signals = this.sides.some((side) => side.signals.size);
    if (!signals && !told) {
      return make("li", { class: kind }, make("div", { class: "line" }, ...label));
    }
    const inside = () => [
      ...(told ? [this.passages.whole(item, asked)] : []),
      ...(signals ? [this.signals(item)] : []),
    ];
    const details = make("details", {}, make("summary", { class: "line" }, ...label));
    details.addEventListener("toggle", () => details.childElementCount > 1 || details.append(...inside()));
    return make("li", { class: kind }, details);
  }

  name(item) {
    const { ids, titles } = this.data;
    return [
      make("strong", { dir: "auto" }, titles[item] || ids[item]),
      ...(titles[item] ? [" ", make("span", { class: "id" }, named(ids[item]))] : []),
    ];
  }

  movement(item, which) {
    const [mine, theirs] = [which, 1 - which].map((side) => this.sides[side].ranks.get(item));
    const way = which ? "from" : "to";
    if (theirs === undefined || theirs > this.k) {
      const where = theirs === undefined ? "" : `, ${way} ${theirs}`;
      return which ? tag("entered", `+ entered${where}`) : tag("left", `\u2212 left${where}`);
    }
    if (mine === theirs) {
      return tag("same", "same rank");
    }
    const up = which ? mine < theirs : theirs < mine;
    const arrow = up ? "\u2191 up" : "\u2193 down";
    return tag(up ? "up" : "down", `${arrow} ${Math.abs(mine - theirs)}, ${way} ${theirs}`);
  }

  signals(item) {
    const { sides } = this;
    const keys = [...new Set(sides.flatMap((side) => [...side.signals.keys()]))].filter((key) => !toldByScore(key, sides));
    const rows = keys
      .map((key) => [key, ...sides.map((side) => signalOf(side, key, item))])
      .filter(([, ...both]) => both.some((signal) => signal.value !== undefined));
    const scored = sides.map((side) => {
      const rank = side.ranks.get(item);
      return rank === undefined ? { said: "not in this list" } : { value: side.scores[rank - 1], rank };
    });
    const heads = ["signal", "first list", "second list", "change"].map((head) => make("th", { scope: "col" }, head));
    const drawn = [["final score", ...scored], ...rows].map((row) => this.signalRow(...row));
    const table = make("table", { class: "signals" }, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...drawn));
    return make("div", { class: "scroll", role: "group", "aria-label": "Signals", tabindex: 0 }, table);
  }

  signalRow(label, mine, theirs) {
    const cells = [mine, theirs].map((signal) =>
      signal.value === undefined
        ? make("td", { class: "missing" }, signal.said)
        : make("td", {}, make("b", {}, String(signal.value)), make("small", {}, ` rank ${signal.rank}`)),
    );
    const [before, after] = [mine, theirs].map((signal) => (signal.value === undefined ? signal.said : signal.rank));
    const change = make("td", { class: before === after ? "said" : "said moved" }, this.compared(mine, theirs));
    return make("tr", {}, make("th", { scope: "row" }, named(label)), ...cells, change);
  }

  compared(mine, theirs) {
    if (mine.value === undefined) {
      return theirs.value === undefined ? "" : "only in second";
    }
    if (theirs.value === undefined) {
      return "only in first";
    }
    const up = mine.rank - theirs.rank;
    return up === 0 ? "same rank" : `${up > 0 ? "\u2191 up" : "\u2193 down"} ${Math.abs(up)}`;
  }

  missed() {
    const missed = [...this.grades.keys()].filter((item) => !this.sides.some((side) => side.within(item, this.k)));
    if (!missed.length) {
      return [];
    }
    const rows = missed.map((item) => {
      const where = this.sides.flatMap((side, place) =>
        side.ranks.has(item) ? [` \u00b7 rank ${side.ranks.get(item)} in `, named(this.names[place])] : [],
      );
      const told = this.passages?.of(item) ? [this.passages.snippet(item, this.data.texts[this.query])] : [];
      return make("li", {}, "\u2605 ", ...this.name(item), ...where, ...told);
    });
    return [
      make("h4", {}, `Gold that neither has in its first ${this.k}`),
      make("ul", { class: "missed" }, ...rows),
    ];
  }
}
