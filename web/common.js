// Small things every part of the page uses.
const $ = id => document.getElementById(id);
const make = (tag, className, text) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
};
const makeSvg = (tag, attributes) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  return node;
};

// What the page keeps for the next visit.
const store = {
  get: name => { try { return localStorage.getItem("penelope." + name); } catch { return null; } },
  set: (name, value) => { try { localStorage.setItem("penelope." + name, value); } catch { /* private windows */ } },
};

// A token may be a part of a character.
function show(text) { return text.replace(/\n/g, "\u21b5").replace(/ /g, "\u00b7").replace(/\ufffd+/g, "\u25af") || "\u2205"; }

// How far a row moved in a step, from its norms before and after and the cosine between: |a - b| / |b|.
function moved(norm, before, cosine) {
  const square = norm * norm + before * before - 2 * norm * before * cosine;
  return Math.sqrt(Math.max(0, square)) / (before || 1);
}
