// Any two lists of any query: what is chosen, and the address that says it.
(() => {
  "use strict";
  const element = (name) => document.getElementById(`explorer-${name}`);
  const block = element("data");
  const root = document.getElementById("explorer");
  const note = element("note");
  if (!block || !root || !note) {
    return;
  }
  const [one, other, cutoff, order, measure, group] = ["one", "other", "cutoff", "order", "measure", "group"].map(element);
  let data;
  let queries;
  let passages = null;
  let written = "";
  const state = {
    query: 0,
    get configurations() {
      return [Number(one.value), Number(other.value)];
    },
    get k() {
      return Number(cutoff.value);
    },
    get order() {
      return order.value;
    },
    get measure() {
      return Number(measure.value);
    },
    get group() {
      return group.value;
    },
  };

  function drawCharts() {
    const [from, to] = state.configurations.map((configuration) => data.configurations[configuration]);
    const drawn = new PerQuery(data, state, from, to, select).drawn();
    element("charts").replaceChildren(...drawn);
    drawn.forEach(takeable);
  }

  function drawLists() {
    element("shown").replaceChildren(...new SideBySide(data, state.query, state.configurations, state.k, passages).drawn());
  }

  // what can be shared stands in the address: the two configurations, the query and the cutoff
  function remember() {
    const [from, to] = state.configurations.map((configuration) => data.configurations[configuration]);
    location.replace(`#${new URLSearchParams({ from, to, query: data.queries[state.query], first: cutoff.value })}`);
    written = location.hash;
  }

  function recall() {
    const given = new URLSearchParams(location.hash.slice(1));
    const [from, to] = ["from", "to"].map((key) => data.configurations.indexOf(given.get(key)));
    const query = data.queries.indexOf(given.get("query"));
    if (from < 0 || to < 0 || query < 0) {
      return false;
    }
    one.value = from;
    other.value = to;
    if (data.cutoffs.map(String).includes(given.get("first"))) {
      cutoff.value = given.get("first");
    }
    state.query = query;
    return true;
  }

  function select(query) {
    state.query = query;
    queries.show();
    drawLists();
    remember();
  }

  function redraw(chosen) {
    queries.choose();
    queries.draw();
    drawCharts();
    drawLists();
    if (chosen) {
      remember();
    }
  }

  // another order is read from its beginning
  function reorder() {
    queries.choose();
    if (queries.found.length) {
      state.query = queries.found[0].query;
    }
    queries.draw();
    drawCharts();
    drawLists();
    remember();
  }

  function filter() {
    queries.choose();
    if (queries.found.length && !queries.found.some((row) => row.query === state.query)) {
      state.query = queries.found[0].query;
      drawLists();
      remember();
    }
    queries.draw();
  }

  function fill(choice, labels, values) {
    choice.replaceChildren(...labels.map((label, place) => make("option", { value: values ? values[place] : place }, label)));
  }

  function fillChoices() {
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
    const best = data.configurations.indexOf(root.dataset.best);
    other.value = best >= 0 && best !== baseline ? best : Number(baseline === 0);
    cutoff.value = data.cutoffs.find((k) => k >= 5) ?? data.depth;
    measure.value = Math.max(0, data.measures.indexOf(root.dataset.measure));
  }

  function start(content) {
    data = content;
    block.remove();
    queries = new QueryList(data, state, select);
    fillChoices();
    const given = recall();
    if (!given) {
      queries.choose();
      state.query = queries.found[0].query;
    }
    for (const choice of [one, other, cutoff]) {
      choice.addEventListener("change", () => redraw(true));
    }
    for (const choice of [order, measure]) {
      choice.addEventListener("change", reorder);
    }
    group.addEventListener("change", filter);
    queries.search.addEventListener("input", filter);
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
      element("title").scrollIntoView();
    }
  }

  // texts come after the lists, which can be read without them
  async function openPassages() {
    const texts = element("passages");
    if (texts) {
      passages = await Passages.opened(texts);
      texts.remove();
      drawLists();
    }
    root.dataset.ready = "true";
  }

  ExplorerData.opened(block).then(start).then(openPassages).catch((error) => {
    root.hidden = true;
    note.hidden = false;
    note.textContent =
      `This browser cannot open the lists of the queries (${error.message}). ` +
      "Use one from 2023 or later, or the command nlp-retrieval diff.";
  });
})();
