// Configurations in the charts: pointed at, focused or chosen, a configuration is shown in all of them.
(() => {
  "use strict";
  const legend = document.querySelector(".legend");
  if (!legend) {
    return;
  }
  const charts = [...document.querySelectorAll(".chart")];
  const section = legend.closest("section");
  const chosen = new Set();
  const names = [...legend.querySelectorAll("li")].map((entry) => entry.querySelector("bdi").textContent);
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
    const button = make("button", { type: "button", "aria-pressed": "false" });
    button.append(...entry.childNodes);
    entry.append(button);
    button.addEventListener("click", () => {
      const series = entry.dataset.series;
      chosen[chosen.has(series) ? "delete" : "add"](series);
      button.setAttribute("aria-pressed", String(chosen.has(series)));
      light();
    });
  }
  follow(section);
  follow(document.getElementById("comparison"));
  document.querySelectorAll(".heats").forEach(follow);

  // what the table's filter hides is hidden here too
  document.addEventListener("filtered", ({ detail }) => {
    for (const one of section.querySelectorAll("[data-series]")) {
      one.classList.toggle("filtered", !detail(names[one.dataset.series].toLocaleLowerCase()));
    }
  });
})();
