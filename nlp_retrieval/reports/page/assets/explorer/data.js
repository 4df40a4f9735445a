// The data of the explorer: the lists of every query, and what they say of a hit.
async function inflated(block) {
  const packed = Uint8Array.from(atob(block.textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

class ExplorerData {
  static async opened(block) {
    if (typeof DecompressionStream === "undefined") {
      throw new Error("it has no DecompressionStream");
    }
    return Object.assign(new ExplorerData(), await inflated(block));
  }

  // one list of one query: its items, their ranks and scores, and the column of each signal
  side(query, configuration) {
    const [items, scores, ...columns] = this.lists[query][configuration];
    const ranks = new Map(items.map((item, position) => [item, position + 1]));
    const signals = new Map(this.has[configuration].map((key, place) => [this.signals[key], columns[place]]));
    return { items, ranks, scores, signals, within: (item, k) => ranks.get(item) <= k };
  }

  grades(query) {
    const [items, grades] = this.gold[query];
    return new Map(items.map((item, place) => [item, grades[place]]));
  }

  gain(query, measure, [one, other]) {
    const [before, after] = [one, other].map((configuration) => this.values[measure]?.[configuration][query] ?? null);
    return before === null || after === null ? null : Math.round((after - before) * 1e4) / 1e4;
  }

  // how many hits the other list has among its first that the one has not
  entered(query, k, configurations) {
    const [before, after] = configurations.map((configuration) => this.lists[query][configuration][0].slice(0, k));
    return after.filter((item) => !before.includes(item)).length;
  }
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

// a rank is told beside the score that it is of
function toldByScore(name, sides) {
  const score = `${name.slice(0, -5)}.score`;
  return name.endsWith(".rank") && sides.every((side) => !side.signals.has(name) || side.signals.has(score));
}
