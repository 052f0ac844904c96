// Summaries of search results are plain text, in which a formula would be the TeX that it is made
// of. Sphinx takes them from Search.htmlToText: here formulas become what one would type.
"use strict";

const SIGNS = {
  alpha: "α", beta: "β", gamma: "γ", delta: "δ", epsilon: "ε", varepsilon: "ε", theta: "θ",
  kappa: "κ", lambda: "λ", mu: "μ", nu: "ν", pi: "π", rho: "ρ", sigma: "σ", tau: "τ", phi: "φ",
  varphi: "φ", chi: "χ", omega: "ω", Gamma: "Γ", Delta: "Δ", Theta: "Θ", Lambda: "Λ", Pi: "Π",
  Sigma: "Σ", Phi: "Φ", Omega: "Ω", ell: "ℓ", partial: "∂", infty: "∞", le: "≤", leq: "≤",
  ge: "≥", geq: "≥", ne: "≠", neq: "≠", approx: "≈", sim: "∼", propto: "∝", preceq: "≼",
  succeq: "≽", in: "∈", setminus: "∖", to: "→", leftarrow: "←", pm: "±", cdot: "·", times: "×",
  otimes: "⊗", odot: "⊙", sum: "∑", prod: "∏", int: "∫", top: "ᵀ", lVert: "‖", rVert: "‖",
  lvert: "|", rvert: "|", langle: "⟨", rangle: "⟩", lfloor: "⌊", rfloor: "⌋", lceil: "⌈",
  rceil: "⌉", ldots: "…", dots: "…", cdots: "⋯", quad: " ", qquad: " ",
};
// Commands that only say how something looks.
const LOOKS = new Set(
  ("left right big Big bigl bigr Bigl Bigr biggl biggr displaystyle text mathrm mathbf mathbb " +
   "mathcal operatorname hat tilde widetilde bar overline limits").split(" "),
);
const RAISED = Object.fromEntries([..."0123456789+-n"].map((sign, i) => [sign, "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ"[i]]));

const isOne = (part) => /^(\w+|.)$/u.test(part);
const grouped = (part) => (isOne(part.trim()) ? part.trim() : `(${part.trim()})`);

function raised(power) {
  const signs = [...power.trim()];
  if (power.trim() === "ᵀ") return "ᵀ";
  if (signs.every((sign) => sign in RAISED)) return signs.map((sign) => RAISED[sign]).join("");
  return `^${grouped(power)}`;
}

function plainFormula(tex) {
  let text = tex
    .replace(/\\begin\{\w+\*?\}(\{[^}]*\})?|\\end\{\w+\*?\}/g, " ")
    .replace(/\\\\/g, "; ")
    .replace(/\\[,;:! ]|[&~]/g, " ")
    .replace(/\\\|/g, "‖")
    .replace(/\\([{}])/g, (_, brace) => (brace === "{" ? "\u0001" : "\u0002"))
    .replace(/\\([A-Za-z]+)/g, (whole, name) => {
      if (name in SIGNS) return SIGNS[name];
      if (LOOKS.has(name)) return "";
      return /^([dt]?frac|binom|sqrt)$/.test(name) ? whole : ` ${name} `;
    });
  for (let before = ""; before !== text; ) {
    // from the innermost braces outwards
    before = text;
    text = text
      .replace(/\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}/, (_, a, b) => `${grouped(a)}/${grouped(b)}`)
      .replace(/\\[dt]?frac\s*(\w)\s*(\w)/, "$1/$2")
      .replace(/\\binom\s*\{([^{}]*)\}\s*\{([^{}]*)\}/, "binom($1, $2)")
      .replace(/\\sqrt\s*\{([^{}]*)\}/, (_, a) => `√${grouped(a)}`)
      .replace(/\^\s*\{([^{}\\]*)\}/, (_, power) => raised(power))
      .replace(/_\s*\{([^{}\\]*)\}/, (_, index) => `_${grouped(index)}`);
    if (before === text) text = text.replace(/\{([^{}\\]*)\}/, "$1");
  }
  return text
    .replace(/\^\s*([0-9nᵀ+-])/g, (_, power) => raised(power))
    .replace(/\\/g, "")
    .replace(/\u0001/g, "{")
    .replace(/\u0002/g, "}")
    .replace(/\s+/g, " ")
    .replace(/([([⟨]) | (?=[)\],⟩])/g, "$1")
    .trim();
}

function plainText(text) {
  return text.replace(/\\\(([^]*?)\\\)|\\\[([^]*?)\\\]/g, (_, inline, display) =>
    plainFormula(inline ?? display),
  );
}

if (typeof document !== "undefined") {
  document.addEventListener("DOMContentLoaded", () => {
    const { htmlToText } = Search;
    Search.htmlToText = (html, anchor) => plainText(htmlToText(html, anchor));
  });
} else {
  module.exports = { plainText }; // for the test
}
