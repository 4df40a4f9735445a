// Hides the citations that a filter leaves out. Without it, everything is visible.
(() => {
  "use strict";
  const controls = document.querySelector(".controls");
  if (!controls) {
    return;
  }
  const articles = [...document.querySelectorAll("article.citation")];
  const filters = [...controls.querySelectorAll("fieldset")];
  const shown = controls.querySelector("output");

  function pressed(filter) {
    return new Set([...filter.querySelectorAll('[aria-pressed="true"]')].map((button) => button.value));
  }

  // within a filter any of what is pressed, and both filters
  function show() {
    const wanted = filters.map((filter) => [filter.dataset.filter, pressed(filter)]);
    for (const article of articles) {
      article.hidden = !wanted.every(([name, values]) => !values.size || values.has(article.dataset[name]));
    }
    const left = articles.filter((article) => !article.hidden).length;
    shown.value = left < articles.length ? `${left} of ${articles.length} shown` : "";
  }

  controls.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      show();
    }
  });
  controls.hidden = false;
})();
