// The list of queries: found by words and group, ordered by what changes, walked through with the keyboard.
class QueryList {
  static AT_ONCE = 300;

  // state: what is chosen; selected: called with a query that the user chose
  constructor(data, state, selected) {
    Object.assign(this, { data, state, selected });
    const element = (name) => document.getElementById(`explorer-${name}`);
    [this.search, this.list, this.count] = ["search", "queries", "count"].map(element);
    this.found = [];
    this.firstDrawn = 0;
    for (const field of [this.search, this.list]) {
      field.addEventListener("keydown", (event) => this.step(event));
    }
  }

  choose() {
    const { data, state } = this;
    const words = this.search.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    this.found = [];
    for (let query = 0; query < data.queries.length; query += 1) {
      const text = `${data.queries[query]} ${data.texts[query]}`.toLocaleLowerCase();
      if ((state.group === "" || data.groups[query] === state.group) && words.every((word) => text.includes(word))) {
        const gain = data.gain(query, state.measure, state.configurations);
        this.found.push({ query, gain, entered: data.entered(query, state.k, state.configurations) });
      }
    }
    const by = {
      change: (row) => -Math.abs(row.gain ?? 0),
      gain: (row) => -(row.gain ?? 0),
      loss: (row) => row.gain ?? 0,
      run: () => 0,
    }[state.order];
    const inRun = state.order === "run";
    this.found.sort((a, b) => by(a) - by(b) || (inRun ? 0 : b.entered - a.entered) || a.query - b.query);
  }

  draw() {
    const { data, found } = this;
    const at = Math.max(0, found.findIndex((row) => row.query === this.state.query));
    this.firstDrawn = Math.max(0, Math.min(at - QueryList.AT_ONCE / 2, found.length - QueryList.AT_ONCE));
    const drawn = found.slice(this.firstDrawn, this.firstDrawn + QueryList.AT_ONCE);
    this.list.replaceChildren(...drawn.map((row, place) => this.option(row, this.firstDrawn + place + 1)));
    const all = data.queries.length.toLocaleString("en");
    const some = found.length.toLocaleString("en");
    const part = found.length > drawn.length ? `; ${drawn.length} of them are listed, type to narrow them down` : "";
    this.count.textContent = `${found.length === data.queries.length ? all : `${some} of ${all}`} queries${part}`;
    this.mark();
  }

  option(row, position) {
    const { data, found } = this;
    const about = [data.queries[row.query], data.groups[row.query]].filter(Boolean).join(" \u00b7 ");
    const moved = row.entered ? `, ${row.entered} entered` : "";
    const option = make(
      "li",
      {
        role: "option",
        id: `explorer-query-${row.query}`,
        "aria-setsize": found.length,
        "aria-posinset": position,
        "aria-selected": false,
      },
      make("span", { class: "text", dir: "auto" }, data.texts[row.query] || data.queries[row.query]),
      make("span", { class: "about" }, this.change(row), moved, " \u00b7 ", named(about)),
    );
    option.addEventListener("click", () => this.selected(row.query));
    return option;
  }

  change(row) {
    if (row.gain === null) {
      return make("span", { class: "chance" }, "no gold");
    }
    const [kind, mark] = row.gain > 0 ? ["better", "\u2191 "] : row.gain < 0 ? ["worse", "\u2193 "] : ["chance", ""];
    return make("span", { class: `change ${kind}` }, mark + signed(row.gain, 2));
  }

  // show which query is selected, and that it is among those drawn
  show() {
    const at = this.found.findIndex((row) => row.query === this.state.query);
    if (at >= 0 && (at < this.firstDrawn || at >= this.firstDrawn + QueryList.AT_ONCE)) {
      this.draw();
    } else {
      this.mark();
    }
  }

  mark() {
    const { list, search } = this;
    for (const option of list.querySelectorAll('[aria-selected="true"]')) {
      option.setAttribute("aria-selected", "false");
    }
    const option = document.getElementById(`explorer-query-${this.state.query}`);
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

  step(event) {
    const at = this.found.findIndex((row) => row.query === this.state.query);
    const last = this.found.length - 1;
    const page = 10;
    const inText = event.currentTarget === this.search;
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
    this.selected(this.found[Math.max(0, Math.min(target, last))].query);
  }
}
