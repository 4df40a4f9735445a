// What the scripts draw with. What users named goes in as text, never as markup.
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

function save(blob, name) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const named = (text) => make("bdi", {}, text);
const figure = (value) => (value === null ? "\u2013" : value.toFixed(3));

function signed(difference, digits = 3) {
  const text = Math.abs(difference).toFixed(digits);
  return `${Number(text) === 0 ? "±" : difference > 0 ? "+" : "\u2212"}${text}`;
}

// parts of a drawing
const drawings = new DOMParser().parseFromString("<svg>", "text/html").querySelector("svg").namespaceURI;

function shape(tag, attributes, text = "") {
  const made = document.createElementNS(drawings, tag);
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(name, value);
  }
  made.textContent = text;
  return made;
}

const label = (x, y, text, anchor, role = "label") =>
  shape("text", { class: role, x, y, dy: "0.35em", "text-anchor": anchor }, text);
const short = (name) => (name.length > 44 ? `${name.slice(0, 24)}\u00b7\u00b7\u00b7${name.slice(-17)}` : name);
