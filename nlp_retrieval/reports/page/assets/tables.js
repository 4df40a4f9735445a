// Tables can be copied and kept as CSV, as they are sorted and filtered; and where one goes on to the right, that is said.
(() => {
  "use strict";
  const isShown = (one) => !one.hidden && !one.closest("[hidden]");

  // as text; what a spreadsheet would take for a formula is kept from it
  function textOf(cell) {
    const data = cell.querySelector("data");
    if (data) {
      return data.value;
    }
    const copy = cell.cloneNode(true);
    copy.querySelectorAll("small, .spoken, .mark, .part, [aria-hidden=true]").forEach((one) => one.remove());
    const text = copy.textContent.trim().replace(/\s+/g, " ");
    return /^[=@+\-]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
  }

  function headOf(table) {
    const cells = [...table.tHead.rows].flatMap((row) => [...row.cells]);
    return cells.filter((cell) => isShown(cell) && cell.scope === "col").map((cell) => cell.dataset.label || textOf(cell));
  }

  function rowsOf(table) {
    const rows = [];
    for (const body of [...table.tBodies].filter(isShown)) {
      const title = body.querySelector("tr.group")?.textContent.trim() ?? "";
      for (const row of [...body.rows].filter((one) => isShown(one) && !one.matches(".group, .sentences"))) {
        const cells = [...row.cells].filter(isShown).map(textOf);
        rows.push(table.querySelector("tr.group") ? [title, ...cells] : cells);
      }
    }
    const head = headOf(table);
    return [table.querySelector("tr.group") ? ["queries", ...head] : head, ...rows];
  }

  const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const csvOf = (table) => rowsOf(table).map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n";
  const textOfTable = (table) => rowsOf(table).map((row) => row.join("\t")).join("\n");

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const field = make("textarea", {});
      field.value = text;
      document.body.append(field);
      field.select();
      document.execCommand("copy");
      field.remove();
    }
  }

  for (const id of ["comparison", "verdicts", "all-pairs", "stage-times"]) {
    const table = document.getElementById(id);
    if (!table) {
      continue;
    }
    const region = table.closest(".scroll");
    const said = make("output", {});
    const tools = make("div", { class: "tools" });
    tools.append(
      button("Copy", async () => {
        await copy(textOfTable(table));
        said.value = "copied";
      }),
      button("CSV", () => save(new Blob([csvOf(table)], { type: "text/csv" }), `${id}.csv`)),
      said,
    );
    const more = button("", () => region.scrollBy({ left: region.clientWidth * 0.7, behavior: "smooth" }));
    more.className = "more";
    tools.append(more);
    const controls = region.previousElementSibling;
    if (controls?.matches(".controls:not([hidden])")) {
      controls.append(tools);
    } else {
      region.before(tools);
    }

    const hinted = () => {
      const left = region.scrollWidth - region.clientWidth - region.scrollLeft;
      const edge = region.getBoundingClientRect().right;
      const families = [...table.querySelectorAll("th.family")].filter((head) => isShown(head));
      const beyond = families.filter((head) => head.getBoundingClientRect().right > edge + 4).map((head) => head.textContent);
      more.hidden = left <= 4;
      more.textContent = `${beyond.length ? beyond.join(", ") : "more"}: further right \u203a`;
    };
    region.addEventListener("scroll", hinted, { passive: true });
    new ResizeObserver(hinted).observe(table);
    new ResizeObserver(hinted).observe(region);
    hinted();
  }
})();
