// What the explorer draws with. What users named goes in as text, never as markup.
function make(tag, attributes, ...content) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(name, value);
  }
  made.append(...content);
  return made;
}

const named = (text) => make("bdi", {}, text);
const figure = (value) => (value === null ? "\u2013" : value.toFixed(3));

function signed(difference, digits = 3) {
  const text = Math.abs(difference).toFixed(digits);
  return `${Number(text) === 0 ? "±" : difference > 0 ? "+" : "\u2212"}${text}`;
}
