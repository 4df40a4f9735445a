// The texts of what was found: the part that a query is about, with the words that both share, as nlp_retrieval/reports/snippets.py.
// Texts go in as text nodes, never as markup.
class Passages {
  static LENGTH = 220;

  constructor({ texts, common, longest }) {
    Object.assign(this, { texts, longest, common: new Set(common) });
  }

  static async opened(block) {
    return new Passages(await inflated(block));
  }

  static words(text) {
    return [...text.matchAll(/[\p{L}\p{N}\p{M}]+/gu)].map((found) => [found[0].toLowerCase(), found.index, found[0].length]);
  }

  static alike(one, other) {
    const [short, long] = one.length < other.length ? [one, other] : [other, one];
    return one === other || (short.length >= 4 && long.length - short.length <= 3 && long.startsWith(short));
  }

  of(item) {
    return this.texts[item] || "";
  }

  spans(text, query) {
    const wanted = [...new Set(Passages.words(query).map(([word]) => word))].filter((word) => !this.common.has(word));
    const unspaced = (word) => word[0] >= "\u2e80";
    const spaced = wanted.filter((word) => !unspaced(word));
    const pairs = new Set();
    for (const word of wanted.filter(unspaced)) {
      for (let place = 0; place < Math.max(1, word.length - 1); place += 1) {
        pairs.add(word.slice(place, place + 2));
      }
    }
    const spans = [];
    for (const [word, begin, long] of Passages.words(text)) {
      if (!unspaced(word)) {
        if (spaced.some((other) => Passages.alike(word, other))) {
          spans.push([begin, begin + long]);
        }
        continue;
      }
      for (let place = 0; place < word.length; place += 1) {
        const pair = [word.slice(place, place + 2), word[place]].find((piece) => pairs.has(piece));
        const [start, end] = [begin + place, begin + place + (pair ?? "").length];
        const last = spans.at(-1);
        if (pair && last && start <= last[1]) {
          last[1] = Math.max(end, last[1]);
        } else if (pair) {
          spans.push([start, end]);
        }
      }
    }
    return spans;
  }

  static part(text, spans) {
    const length = Passages.LENGTH;
    if (text.length <= length) {
      return [0, text.length];
    }
    const begins = spans.map(([start]) => {
      const early = Math.max(0, start - 40);
      return early && Math.min(start, text.indexOf(" ", early) + 1 || start);
    });
    const held = (start) =>
      new Set(
        spans.filter(([begin, end]) => start <= begin && end <= start + length).map((span) => text.slice(...span).toLowerCase()),
      ).size;
    const start = [0, ...begins].reduce((best, place) => (held(place) > held(best) ? place : best), 0);
    const end = Math.min(text.length, start + length);
    const cut = end < text.length ? text.slice(start + Math.floor(length / 2), end).lastIndexOf(" ") : -1;
    return [start, cut < 0 ? end : start + Math.floor(length / 2) + cut];
  }

  // a part of a text, with its marks
  marked(text, [from, to], spans) {
    const drawn = from > 0 ? ["\u2026 "] : [];
    let done = from;
    for (const [begin, end] of spans.filter(([begin, end]) => from <= begin && end <= to)) {
      drawn.push(text.slice(done, begin), make("mark", {}, text.slice(begin, end)));
      done = end;
    }
    drawn.push(text.slice(done, to));
    return to < text.length ? [...drawn, " \u2026"] : drawn;
  }

  snippet(item, query) {
    const text = this.of(item);
    const spans = this.spans(text, query);
    return make("span", { class: "snippet", dir: "auto" }, ...this.marked(text, Passages.part(text, spans), spans));
  }

  whole(item, query) {
    const text = this.of(item);
    return make("p", { class: "passage", dir: "auto", tabindex: 0 }, ...this.marked(text, [0, text.length], this.spans(text, query)));
  }
}
