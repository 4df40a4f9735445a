// Opens the answer that is linked to, and hides what a choice leaves out. Without it, everything is there.
(() => {
  "use strict";
  const controls = document.querySelector(".controls");
  const subjects = [...document.querySelectorAll("section.subject")];
  const choices = Object.fromEntries([...controls.querySelectorAll("select")].map((one) => [one.dataset.choice, one]));

  function show() {
    for (const section of subjects) {
      section.hidden = Boolean(choices.subject.value) && section.dataset.subject !== choices.subject.value;
      for (const answer of section.querySelectorAll("details")) {
        answer.hidden = Boolean(choices.question.value) && answer.dataset.question !== choices.question.value;
      }
    }
  }

  function reveal() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) {
      return;
    }
    if (target.closest("[hidden]")) {
      choices.subject.value = "";
      choices.question.value = "";
      show();
    }
    if (target.tagName === "DETAILS") {
      target.open = true;
    }
    target.scrollIntoView();
  }

  const scores = controls.querySelector("[data-scores]");
  function score() {
    document.body.classList.toggle("without-scores", !scores.checked);
  }

  controls.addEventListener("change", show);
  scores.addEventListener("change", score);
  controls.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    for (const section of button ? subjects.filter((one) => !one.hidden) : []) {
      for (const answer of section.querySelectorAll("details:not([hidden])")) {
        answer.open = button.dataset.open === "true";
      }
    }
  });
  addEventListener("hashchange", reveal);
  // a printed page has nothing that could be opened
  addEventListener("beforeprint", () => document.querySelectorAll("section.subject details").forEach((one) => (one.open = true)));
  controls.hidden = false;
  score();
  reveal();
})();
