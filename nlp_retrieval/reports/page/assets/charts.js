// Configurations in the charts: pointed at, focused or chosen, a configuration is shown in all of them.
(() => {
  "use strict";
  const legend = document.querySelector(".legend");
  if (!legend) {
    return;
  }
  const charts = [...document.querySelectorAll(".chart")];
  const areas = [legend, ...document.querySelectorAll("header .drawing, .charts, #comparison")];
  const chosen = new Set();
  const names = {};
  for (const entry of legend.querySelectorAll("li")) {
    names[entry.dataset.series] = entry.querySelector("bdi").textContent;
  }
  const seriesOf = (target) => (target.closest("[data-series]") ?? target.closest("tr")?.cells[0])?.dataset.series;

  function light(pointed) {
    const lit = new Set(pointed === undefined ? chosen : [...chosen, pointed]);
    for (const chart of charts) {
      const drawn = [...chart.querySelectorAll("g[data-series]")];
      chart.classList.toggle("lit", drawn.some((group) => lit.has(group.dataset.series)));
    }
    for (const one of document.querySelectorAll("[data-series]")) {
      one.classList.toggle("lit", lit.has(one.dataset.series));
    }
  }

  function follow(area) {
    for (const event of ["pointerover", "focusin"]) {
      area.addEventListener(event, ({ target }) => light(seriesOf(target)));
    }
    for (const event of ["pointerleave", "focusout"]) {
      area.addEventListener(event, () => light());
    }
  }

  for (const entry of legend.querySelectorAll("li")) {
    const chooser = button("", () => {
      const series = entry.dataset.series;
      chosen[chosen.has(series) ? "delete" : "add"](series);
      chooser.setAttribute("aria-pressed", String(chosen.has(series)));
      light();
    });
    chooser.setAttribute("aria-pressed", "false");
    chooser.append(...entry.childNodes);
    entry.append(chooser);
  }
  areas.forEach(follow);

  // what the table's filter hides is hidden here too
  document.addEventListener("filtered", ({ detail }) => {
    for (const one of document.querySelectorAll(".chart [data-series], .legend [data-series]")) {
      one.classList.toggle("filtered", !detail(names[one.dataset.series].toLocaleLowerCase()));
    }
  });
})();
