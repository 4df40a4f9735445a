// Drawings to take away, as SVG and as PNG: in the light colours, whatever the page is in.
// A PNG is drawn shape by shape: the page's policy lets nothing load an image, not even from the page itself.
const takeable = (() => {
  "use strict";
  const KEPT = "fill stroke stroke-width stroke-dasharray stroke-linejoin opacity paint-order font-family font-size font-weight".split(" ");
  const PER_POINT = 3;

  function inLight(work) {
    const root = document.documentElement;
    root.classList.add("paper");
    try {
      return work();
    } finally {
      root.classList.remove("paper");
    }
  }

  // a copy with the colours and sizes that the page's style sheet gives; what is not shown is left out
  function copied(one) {
    if (one.nodeType === Node.TEXT_NODE || one.matches("title, desc")) {
      return one.cloneNode(true);
    }
    const style = getComputedStyle(one);
    if (style.display === "none") {
      return "";
    }
    const copy = one.cloneNode(false);
    copy.removeAttribute("class");
    for (const name of one.matches("svg") ? [] : KEPT) {
      copy.setAttribute(name, style.getPropertyValue(name));
    }
    copy.append(...[...one.childNodes].map(copied));
    return copy;
  }

  function svgOf(drawing) {
    const copy = copied(drawing);
    const { width, height } = drawing.viewBox.baseVal;
    for (const [name, value] of Object.entries({ width, height })) {
      copy.setAttribute(name, value);
    }
    copy.prepend(shape("rect", { width, height, fill: "#fff" }));
    return new XMLSerializer().serializeToString(copy);
  }

  function opacity(one, drawing) {
    return one === drawing ? 1 : Number(getComputedStyle(one).opacity) * opacity(one.parentNode, drawing);
  }

  function paint(brush, one, drawing) {
    const style = getComputedStyle(one);
    const { a, b, c, d, e, f } = drawing.getScreenCTM().inverse().multiply(one.getScreenCTM());
    brush.setTransform(PER_POINT * a, PER_POINT * b, PER_POINT * c, PER_POINT * d, PER_POINT * e, PER_POINT * f);
    brush.globalAlpha = opacity(one, drawing);
    brush.lineWidth = parseFloat(style.strokeWidth);
    brush.lineJoin = "round";
    brush.setLineDash(style.strokeDasharray === "none" ? [] : style.strokeDasharray.split(",").map(parseFloat));
    [brush.fillStyle, brush.strokeStyle] = [style.fill, style.stroke];
    if (one.matches("text")) {
      brush.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
      brush.textAlign = { start: "left", middle: "center", end: "right" }[style.textAnchor];
      const at = [Number(one.getAttribute("x")), Number(one.getAttribute("y")) + 0.35 * parseFloat(style.fontSize)];
      brush.strokeText(one.textContent, ...at);
      brush.fillText(one.textContent, ...at);
      return;
    }
    const { x, y, width, height, r, cx, cy } = one;
    const outline = new Path2D(one.getAttribute("d") ?? "");
    if (one.matches("rect")) {
      outline.rect(...[x, y, width, height].map((length) => length.baseVal.value));
    } else if (one.matches("circle")) {
      outline.arc(cx.baseVal.value, cy.baseVal.value, r.baseVal.value, 0, 2 * Math.PI);
    }
    if (style.fill !== "none") {
      brush.fill(outline);
    }
    if (style.stroke !== "none") {
      brush.stroke(outline);
    }
  }

  function canvasOf(drawing) {
    const { width, height } = drawing.viewBox.baseVal;
    const canvas = make("canvas", { width: PER_POINT * width, height: PER_POINT * height });
    const brush = canvas.getContext("2d");
    brush.fillStyle = "#fff";
    brush.fillRect(0, 0, canvas.width, canvas.height);
    for (const one of drawing.querySelectorAll("path, rect, circle, text")) {
      if (one.checkVisibility()) {
        paint(brush, one, drawing);
      }
    }
    return canvas;
  }

  return (figure) => {
    const shown = () => [...figure.querySelectorAll("svg.chart")].find((drawing) => drawing.checkVisibility());
    const name = () => shown().querySelector("title").textContent.replace(/[^\p{L}\p{N}@]+/gu, "-");
    const svg = button("SVG", () => save(new Blob([inLight(() => svgOf(shown()))], { type: "image/svg+xml" }), `${name()}.svg`));
    const png = button("PNG", () => inLight(() => canvasOf(shown())).toBlob((blob) => save(blob, `${name()}.png`)));
    for (const [kind, take] of [["SVG", svg], ["PNG", png]]) {
      take.setAttribute("aria-label", `Save the chart as ${kind}: ${name()}`);
    }
    figure.append(make("div", { class: "take" }, svg, png));
  };
})();

document.querySelectorAll("figure.drawing").forEach(takeable);
