// Filters: a citation is shown if its result is among those that are pressed, or none is. Without it everything can be read.
(() => {
  "use strict";
  const controls = document.querySelector(".controls");
  if (!controls) {
    return;
  }
  const articles = [...document.querySelectorAll("article.citation")];
  const buttons = [...controls.querySelectorAll("button")];
  const pressed = (button) => button.getAttribute("aria-pressed") === "true";

  function filter() {
    const wanted = new Set(buttons.filter(pressed).map((button) => button.value));
    for (const article of articles) {
      article.hidden = wanted.size > 0 && !wanted.has(article.dataset.result);
    }
    const left = articles.filter((article) => !article.hidden).length;
    controls.querySelector("output").value = left < articles.length ? `${left} of ${articles.length} shown` : "";
  }

  for (const button of buttons) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(!pressed(button)));
      filter();
    });
  }

  // a mark in the report may lead to a citation that is hidden
  window.addEventListener("hashchange", () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target?.hidden) {
      buttons.forEach((button) => button.setAttribute("aria-pressed", "false"));
      filter();
      target.scrollIntoView();
    }
  });
  controls.hidden = false;
})();
