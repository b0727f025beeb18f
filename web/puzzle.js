// Puzzles of the thread task: every letter has an arrow to another one, or to itself where its thread ends; ?Z asks where
// the thread that begins at Z ends. As text: the pairs in any order, "ZN Na aC ... JJ ?Z".
class Puzzle {
  constructor(pairs, start) {
    this.pairs = pairs; // ["ZN", ...] in the order of the text
    this.start = start;
    this.next = new Map(pairs.map(pair => [pair[0], pair[1]]));
  }

  // Null unless the text is a puzzle in which every thread ends.
  static parse(text) {
    const words = text.trim().split(/\s+/), asked = words.pop() || "";
    if (!/^\?[A-Za-z]$/.test(asked) || !words.length || !words.every(word => /^[A-Za-z]{2}$/.test(word))) return null;
    const puzzle = new Puzzle(words, asked[1]);
    const letters = [...puzzle.next.keys()];
    const known = puzzle.next.size === words.length && puzzle.next.has(asked[1]) && [...puzzle.next.values()].every(to => puzzle.next.has(to));
    return known && letters.every(letter => puzzle.path(letter)) ? puzzle : null;
  }

  // By the rules of `penelope data thread`: three chains of eight arrows, letters drawn without repetition, pairs shuffled.
  // depth: arrows from the letter that is asked for to its end.
  static random(depth, random = Math.random) {
    const shuffle = list => {
      for (let i = list.length - 1; i > 0; i--) {
        const j = Math.floor(random() * (i + 1));
        [list[i], list[j]] = [list[j], list[i]];
      }
      return list;
    };
    const nLetters = 9, letters = shuffle([..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"]), pairs = [];
    for (let i = 0; i < 3 * nLetters; i++) pairs.push(letters[i] + letters[i % nLetters === nLetters - 1 ? i : i + 1]);
    const chain = Math.floor(random() * 3);
    return new Puzzle(shuffle(pairs), letters[chain * nLetters + nLetters - 1 - depth]);
  }

  get text() { return this.pairs.join(" ") + " ?" + this.start; }

  // The letters from one to the end of its thread; null where there is none.
  path(from = this.start) {
    const letters = [from];
    for (let at = from; this.next.get(at) !== at; letters.push(at)) {
      at = this.next.get(at);
      if (at === undefined || letters.includes(at)) return null;
    }
    return letters;
  }
  get answer() { return this.path().slice(-1)[0]; }
  get depth() { return this.path().length - 1; }

  // Threads for drawing: each letter once, those that nobody points to first.
  chains() {
    const pointed = new Set([...this.next].filter(([from, to]) => from !== to).map(([, to]) => to)), drawn = new Set(), chains = [];
    for (const from of this.next.keys()) {
      if (pointed.has(from)) continue;
      const chain = this.path(from).filter(letter => !drawn.has(letter));
      chain.forEach(letter => drawn.add(letter));
      chains.push(chain);
    }
    return chains;
  }

  withStart(letter) { return new Puzzle(this.pairs, letter); }

  // The arrow of `from` leads to `to`; null where that would make a circle or `from` is an end.
  withArrow(from, to) {
    if (this.next.get(from) === from || from === to || this.path(to).includes(from)) return null;
    return new Puzzle(this.pairs.map(pair => pair[0] === from ? from + to : pair), this.start);
  }
}
