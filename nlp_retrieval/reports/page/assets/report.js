// Hides, shows and sorts what already stands in the page. Without it, everything is visible.
(() => {
  "use strict";
  const table = document.getElementById("comparison");
  const controls = table.closest("section").querySelector(".controls");
  const group = document.getElementById("group");
  const differences = document.getElementById("differences");
  const families = [...controls.querySelectorAll("input[name=family]")];
  const bodies = [...table.tBodies];
  const filter = document.createElement("input");
  const filtered = document.createElement("output");
  const heads = [...table.tHead.rows].flatMap((row) => [...row.cells]).filter((head) => head.scope === "col");
  const givenOrder = new Map(bodies.flatMap((body) => [...body.rows].map((row, place) => [row, place])));

  function showGroup() {
    for (const body of bodies) {
      body.hidden = group.value !== "" && body.dataset.group !== group.value;
    }
  }

  function showFamilies() {
    const shown = new Set(["axis", "main", ...families.filter((box) => box.checked).map((box) => box.value)]);
    for (const cell of table.querySelectorAll("[data-family]")) {
      cell.hidden = !shown.has(cell.dataset.family);
    }
    const columns = heads.filter((head) => !head.hidden).length;
    for (const head of table.querySelectorAll("th[scope=rowgroup]")) {
      head.colSpan = columns;
    }
  }

  function nameOf(row) {
    return row.cells[0].querySelector("bdi").textContent;
  }

  // every word has to be in the name; one that begins with a minus must not be
  function showNames() {
    const words = filter.value.toLocaleLowerCase().split(/\s+/).filter((word) => word && word !== "-");
    const fits = (name) =>
      words.every((word) => (word.startsWith("-") ? !name.includes(word.slice(1)) : name.includes(word)));
    for (const body of bodies) {
      for (const row of [...body.rows].slice(1)) {
        row.hidden = !fits(nameOf(row).toLocaleLowerCase());
      }
    }
    document.dispatchEvent(new CustomEvent("filtered", { detail: fits }));
    const rows = [...(bodies[0]?.rows ?? [])].slice(1);
    table.classList.toggle("filtering", words.length > 0);
    filtered.value = words.length ? `${rows.filter((row) => !row.hidden).length} of ${rows.length}` : "";
  }

  function showDifferences() {
    table.classList.toggle("plain", !differences.checked);
  }

  function figure(row, column) {
    const data = row.cells[column].querySelector("data");
    return data ? Number(data.value) : null;
  }

  function compare(column, direction) {
    return (one, other) => {
      let order = 0;
      if (heads[column].dataset.sort === "name") {
        const names = [one, other].map((row) => (column ? row.cells[column].textContent : nameOf(row)));
        order = names[0].localeCompare(names[1], "en", { numeric: true }) * direction;
      } else {
        const values = [figure(one, column), figure(other, column)];
        // what was not measured stays last, whichever way the column is sorted
        if (values.includes(null)) {
          return (values[0] === null) - (values[1] === null);
        }
        order = (values[0] - values[1]) * direction;
      }
      return order || givenOrder.get(one) - givenOrder.get(other);
    };
  }

  function sortBy(head, column) {
    const ascendingFirst = head.dataset.sort !== "high";
    const states = ascendingFirst ? ["ascending", "descending"] : ["descending", "ascending"];
    const next = states[states.indexOf(head.getAttribute("aria-sort")) + 1] || "none";
    for (const other of table.querySelectorAll("th[aria-sort]")) {
      other.setAttribute("aria-sort", "none");
    }
    head.setAttribute("aria-sort", next);
    const order =
      next === "none"
        ? (one, other) => givenOrder.get(one) - givenOrder.get(other)
        : compare(column, next === "ascending" ? 1 : -1);
    for (const body of bodies) {
      body.append(...[...body.rows].slice(1).sort(order));
    }
  }

  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    if (head.dataset.label) {
      button.setAttribute("aria-label", head.dataset.label);
    }
    button.addEventListener("click", () => sortBy(head, column));
    head.append(button);
    head.setAttribute("aria-sort", head.matches(".main") ? "descending" : "none");
  });

  // tables of which one part is shown at a time
  for (const [id, ...choices] of [["verdicts", "tested-measure", "tested-group"], ["all-pairs", "pairs-measure"]]) {
    const parts = document.getElementById(id);
    const [measure, queries] = choices.map((choice) => document.getElementById(choice));
    const show = () => {
      for (const body of parts.tBodies) {
        body.hidden = body.dataset.measure !== measure.value || (queries && body.dataset.group !== queries.value);
      }
    };
    for (const choice of parts ? [measure, queries].filter(Boolean) : []) {
      choice.addEventListener("change", show);
      choice.closest(".controls").hidden = choices.length === 1 && choice.length < 2;
      show();
    }
  }

  // long tables and lists begin with their first rows
  const many = document.querySelectorAll(".list:has(> .over), table:has(.over), #comparison:has(tbody tr:nth-child(32))");
  for (const long of many) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "all";
    const show = (cut) => {
      long.classList.toggle("cut", cut);
      button.setAttribute("aria-expanded", String(!cut));
      button.textContent = cut ? "Show all" : "Show fewer";
    };
    button.addEventListener("click", () => show(!long.matches(".cut")));
    (long.closest(".scroll") ?? long).after(button);
    show(true);
  }

  filter.type = "search";
  filter.id = "filter";
  filter.placeholder = "bm25 -rerank";
  filter.addEventListener("input", showNames);
  const labelled = document.createElement("label");
  labelled.className = "groups";
  labelled.append("Configurations with ", filter, filtered);
  controls.append(labelled);

  group.addEventListener("change", showGroup);
  differences.addEventListener("change", showDifferences);
  families.forEach((box) => box.addEventListener("change", showFamilies));
  showGroup();
  showFamilies();
  showDifferences();
  controls.hidden = false;
})();
