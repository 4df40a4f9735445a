// Hides, shows and sorts what already stands in the page, and saves tables and charts. Without it, everything is visible.
// What users named goes in as text, never as markup.
function make(tag, attributes, ...content) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(name, value);
  }
  made.append(...content);
  return made;
}

function button(label, act) {
  const made = make("button", { type: "button" }, label);
  made.addEventListener("click", act);
  return made;
}

function save(content, type, name) {
  const link = make("a", { href: URL.createObjectURL(new Blob([content], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// The table of quality and cost: one group of queries, the families and configurations that were chosen, sorted by a column.
(() => {
  "use strict";
  const table = document.getElementById("comparison");
  const controls = table.closest("section").querySelector(".controls");
  const group = document.getElementById("group");
  const boxes = [...controls.querySelectorAll("input[name=family]")];
  const bodies = [...table.tBodies];
  const heads = [...table.tHead.rows].flatMap((row) => [...row.cells]).filter((head) => head.scope === "col");
  const rowsOf = (body) => [...body.rows].slice(1);
  const given = new Map(bodies.flatMap((body) => rowsOf(body).map((row, place) => [row, place])));
  const nameOf = (row) => row.cells[0].querySelector("bdi").textContent;

  function showGroup() {
    for (const body of bodies) {
      body.hidden = body.dataset.group !== group.value;
    }
  }

  function showFamilies() {
    const hidden = new Set(boxes.filter((box) => !box.checked).map((box) => box.value));
    for (const head of table.tHead.querySelectorAll("[data-family]")) {
      head.hidden = hidden.has(head.dataset.family);
    }
    for (const row of given.keys()) {
      heads.forEach((head, place) => {
        row.cells[place].hidden = head.hidden;
      });
    }
  }

  // every word has to be in the name; one that begins with a minus must not be
  const found = make("output", {});
  const search = make("input", { type: "search", id: "filter", placeholder: "bm25 -rerank" });
  search.addEventListener("input", () => {
    const words = search.value.toLocaleLowerCase().split(/\s+/).filter((word) => word && word !== "-");
    const fits = (name) => words.every((word) => (word.startsWith("-") ? !name.includes(word.slice(1)) : name.includes(word)));
    for (const row of given.keys()) {
      row.hidden = !fits(nameOf(row).toLocaleLowerCase());
    }
    const rows = rowsOf(bodies[0]);
    found.value = words.length ? `${rows.filter((row) => !row.hidden).length} of ${rows.length}` : "";
  });
  controls.append(make("label", { class: "groups" }, "Configurations with ", search, found));

  // what was not measured stays last, whichever way the column is sorted
  function compare(place, direction) {
    const number = (row) => parseFloat(row.cells[place].textContent.replaceAll(",", "").replace("\u2212", "-"));
    const text = (row) => (place ? row.cells[place].textContent : nameOf(row));
    if (heads[place].dataset.sort === "name") {
      return (one, other) => direction * text(one).localeCompare(text(other), "en", { numeric: true });
    }
    return (one, other) => {
      const values = [number(one), number(other)];
      return Number.isNaN(values[0]) || Number.isNaN(values[1])
        ? Number.isNaN(values[0]) - Number.isNaN(values[1])
        : direction * (values[0] - values[1]);
    };
  }

  heads.forEach((head, place) => {
    const sort = button("", () => {
      const states = head.dataset.sort === "high" ? ["descending", "ascending", "none"] : ["ascending", "descending", "none"];
      const next = states[(states.indexOf(head.getAttribute("aria-sort")) + 1) % 3];
      heads.forEach((other) => other.setAttribute("aria-sort", other === head ? next : "none"));
      const order = next === "none" ? () => 0 : compare(place, next === "ascending" ? 1 : -1);
      for (const body of bodies) {
        body.append(...rowsOf(body).sort((one, other) => order(one, other) || given.get(one) - given.get(other)));
      }
    });
    sort.append(...head.childNodes);
    if (head.dataset.label) {
      sort.setAttribute("aria-label", head.dataset.label);
    }
    head.append(sort);
    head.setAttribute("aria-sort", head.matches(".main") ? "descending" : "none");
  });

  group.addEventListener("change", showGroup);
  boxes.forEach((box) => box.addEventListener("change", showFamilies));
  showGroup();
  showFamilies();
  controls.hidden = false;
})();

// The differences in one measure at a time; long tables and lists begin with their first rows.
(() => {
  "use strict";
  const part = document.getElementById("tested-part");
  if (part) {
    const show = () => {
      for (const body of document.getElementById("verdicts").tBodies) {
        body.hidden = body.dataset.part !== part.value;
      }
    };
    part.addEventListener("change", show);
    part.closest(".controls").hidden = part.length < 2;
    show();
  }
  for (const long of document.querySelectorAll(".list:has(> .over), table:has(.over)")) {
    const more = button("Show all", () => {
      const cut = long.classList.toggle("cut");
      more.setAttribute("aria-expanded", String(!cut));
      more.textContent = cut ? "Show all" : "Show fewer";
    });
    more.setAttribute("aria-expanded", "false");
    more.className = "all";
    long.classList.add("cut");
    (long.closest(".scroll") ?? long).after(more);
  }
})();

// Tables as CSV, as they are sorted and filtered. What a spreadsheet would take for a formula is kept from it.
(() => {
  "use strict";
  const isShown = (one) => !one.hidden && !one.closest("[hidden]");

  function textOf(cell) {
    const copy = cell.cloneNode(true);
    copy.querySelectorAll("small, i, svg, .spoken, .key").forEach((one) => one.remove());
    const text = (cell.dataset.label ?? copy.textContent).trim().replace(/\s+/g, " ").replace(/^\u2212(?=\d)/, "-");
    const safe = /^[=@+\-]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
    return /[",]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }

  for (const table of document.querySelectorAll("#comparison, #verdicts, #all-pairs, #stage-times")) {
    const csv = button("CSV", () => {
      const heads = [...table.tHead.rows].flatMap((row) => [...row.cells]).filter((head) => head.scope === "col");
      const rows = [...table.tBodies].flatMap((body) => [...body.rows]).filter((row) => isShown(row) && !row.matches(".group"));
      const lines = [heads, ...rows.map((row) => [...row.cells])].map((cells) => cells.filter(isShown).map(textOf).join(","));
      save(`${lines.join("\r\n")}\r\n`, "text/csv", `${table.id}.csv`);
    });
    table.closest(".scroll").before(make("div", { class: "tools" }, csv));
  }
})();

// Charts: pointed at or chosen in the legend, a configuration is shown in all of them; each can be saved in light colours.
(() => {
  "use strict";
  const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight"];
  const chosen = new Set();
  const seriesOf = (target) => (target.closest("[data-series]") ?? target.closest("tr")?.cells[0])?.dataset.series;

  function light(pointed) {
    const lit = new Set(pointed === undefined ? chosen : [...chosen, pointed]);
    for (const chart of document.querySelectorAll(".chart")) {
      chart.classList.toggle("lit", lit.size > 0);
    }
    for (const one of document.querySelectorAll("[data-series]")) {
      one.classList.toggle("lit", lit.has(one.dataset.series));
    }
  }

  for (const entry of document.querySelectorAll(".legend li")) {
    const choose = button("", () => {
      const { series } = entry.dataset;
      chosen[chosen.has(series) ? "delete" : "add"](series);
      choose.setAttribute("aria-pressed", String(chosen.has(series)));
      light();
    });
    choose.setAttribute("aria-pressed", "false");
    choose.append(...entry.childNodes);
    entry.append(choose);
  }
  for (const area of document.querySelectorAll(".legend, .drawing, #comparison")) {
    area.addEventListener("pointerover", ({ target }) => light(seriesOf(target)));
    area.addEventListener("pointerleave", () => light());
  }

  // a copy with the colours and sizes that the page's style sheet gives
  function copied(one) {
    const copy = one.cloneNode(false);
    if (one.nodeType === Node.ELEMENT_NODE) {
      const style = getComputedStyle(one);
      copy.removeAttribute("class");
      for (const name of one.matches("svg, title, desc") ? [] : KEPT) {
        copy.setAttribute(name, style.getPropertyValue(name));
      }
      copy.append(...[...one.childNodes].map(copied));
    }
    return copy;
  }

  for (const figure of document.querySelectorAll("figure.drawing")) {
    const chart = figure.querySelector("svg");
    const title = chart.querySelector("title").textContent;
    const take = button("SVG", () => {
      document.documentElement.classList.add("paper");
      const content = new XMLSerializer().serializeToString(copied(chart));
      document.documentElement.classList.remove("paper");
      save(content, "image/svg+xml", `${title.replace(/[^\p{L}\p{N}@]+/gu, "-")}.svg`);
    });
    take.setAttribute("aria-label", `Save the chart as SVG: ${title}`);
    figure.append(make("div", { class: "take" }, take));
  }
})();
