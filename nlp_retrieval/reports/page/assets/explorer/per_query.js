// Two configurations query by query: what each query wins or loses, and the values of both. A click leads to the query.
class PerQuery {
  static SIZE = [420, 250];
  static AREA = { left: 44, right: 410, top: 26, bottom: 212 };

  constructor(data, state, from, to, select) {
    Object.assign(this, { data, from, to, select });
    const values = data.values[state.measure] ?? [];
    const [before, after] = state.configurations.map((configuration) => values[configuration] ?? []);
    this.measure = (data.measures[state.measure] ?? "").replaceAll("_", " ");
    this.queries = before
      .map((value, query) => ({ query, before: value, after: after[query] }))
      .filter((one) => one.before !== null && one.after !== null)
      .map((one) => ({ ...one, gain: Math.round((one.after - one.before) * 1e4) / 1e4 }));
  }

  drawn() {
    return this.queries.length ? [this.bars(), this.scatter()] : [];
  }

  static kind(gain) {
    return gain > 0 ? "better" : gain < 0 ? "worse" : "chance";
  }

  bars() {
    const { left, right, top, bottom } = PerQuery.AREA;
    const sorted = [...this.queries].sort((one, other) => other.gain - one.gain);
    const [high, low] = [Math.max(0, sorted[0].gain), Math.min(0, sorted.at(-1).gain)];
    const y = (gain) => (high > low ? bottom - ((gain - low) / (high - low)) * (bottom - top) : bottom);
    const step = (right - left) / sorted.length;
    const gap = step > 3 ? 0.5 : 0;
    const drawn = { better: "", worse: "" };
    sorted.forEach(({ gain }, place) => {
      if (gain) {
        drawn[PerQuery.kind(gain)] += `M${(left + place * step).toFixed(2)},${y(0).toFixed(1)}V${y(gain).toFixed(1)}h${(step - gap).toFixed(2)}V${y(0).toFixed(1)}Z`;
      }
    });
    const count = (kind) => sorted.filter(({ gain }) => PerQuery.kind(gain) === kind).length;
    const said = `${count("better")} won, ${count("chance")} tied, ${count("worse")} lost`;
    const ticks = [high, 0, low].filter((tick, place) => place === 1 || Math.abs(y(tick) - y(0)) > 10);
    const parts = [
      ...ticks.map((tick) => shape("path", { class: "grid", stroke: "currentColor", d: `M${left},${y(tick)}H${right}` })),
      ...ticks.map((tick) => label(left - 6, y(tick), tick ? signed(tick, 2) : "0", "end")),
      ...Object.entries(drawn).map(([kind, d]) => shape("path", { class: `bars ${kind}`, fill: "currentColor", d })),
      label((left + right) / 2, bottom + 16, `${sorted.length} queries, sorted: ${said}`, "middle"),
    ];
    return this.figure("Won and lost, query by query", said, parts, (px) => {
      const place = Math.floor((px - left) / step);
      return sorted[Math.max(0, Math.min(place, sorted.length - 1))].query;
    });
  }

  scatter() {
    const { left, top, bottom } = PerQuery.AREA;
    const size = bottom - top;
    const most = Math.max(1, ...this.queries.flatMap(({ before, after }) => [before, after]));
    const at = ({ before, after }) => [left + (before / most) * size, bottom - (after / most) * size];
    const places = new Map();
    for (const one of this.queries) {
      const key = at(one).map((length) => Math.round(length / 4)).join();
      places.set(key, [...(places.get(key) ?? []), one]);
    }
    const piles = [...places.values()].sort((one, other) => other.length - one.length);
    const radius = (pile) => Math.min(16, 2.5 * Math.sqrt(pile.length));
    const ticks = [0, most / 2, most];
    const parts = [
      ...ticks.flatMap((tick) => [
        label(left - 6, bottom - (tick / most) * size, tick.toFixed(1), "end"),
        label(left + (tick / most) * size, bottom + 14, tick.toFixed(1), "middle"),
      ]),
      shape("path", { class: "grid", fill: "none", stroke: "currentColor", d: `M${left},${top}V${bottom}H${left + size}` }),
      shape("path", { class: "step", stroke: "currentColor", "stroke-dasharray": "5 3", d: `M${left},${bottom}L${left + size},${top}` }),
      ...piles.map((pile) => {
        const [cx, cy] = at(pile[0]);
        const dot = shape("circle", { class: `pile ${PerQuery.kind(pile[0].gain)}`, fill: "currentColor", cx, cy, r: radius(pile) });
        dot.append(shape("title", {}, `${pile.length} ${pile.length === 1 ? "query" : "queries"}: ${pile[0].before} to ${pile[0].after}`));
        return dot;
      }),
      label(left + size + 20, top + 6, "above the line:", "start"),
      label(left + size + 20, top + 22, "won", "start"),
      label(left + size + 20, bottom - 40, "larger: more", "start"),
      label(left + size + 20, bottom - 24, "queries", "start"),
      label(left + size / 2, bottom + 32, `from ${short(this.from)}`, "middle"),
    ];
    const near = (px, py) => {
      const away = (one) => Math.hypot(at(one)[0] - px, at(one)[1] - py);
      return this.queries.reduce((best, one) => (away(one) < away(best) ? one : best)).query;
    };
    return this.figure("Both values of each query", `to ${short(this.to)}`, parts, near);
  }

  figure(title, said, parts, queryAt) {
    const [width, height] = PerQuery.SIZE;
    const about = `${title}: ${this.measure}, from ${this.from} to ${this.to}`;
    const drawing = shape("svg", { class: "chart clicked", role: "img", viewBox: `0 0 ${width} ${height}`, "aria-label": `${about}; ${said}` });
    drawing.append(shape("title", {}, about), label(2, 10, `${this.measure}, ${said}`, "start", "axis-title"), ...parts);
    drawing.addEventListener("click", ({ clientX, clientY }) => {
      const point = new DOMPoint(clientX, clientY).matrixTransform(drawing.getScreenCTM().inverse());
      this.select(queryAt(point.x, point.y));
    });
    return make("figure", { class: "drawing" }, drawing, make("figcaption", {}, `${title}; click to open one.`));
  }
}
