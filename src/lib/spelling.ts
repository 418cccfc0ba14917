/**
 * One writing for all spellings that some file system takes for the same path: letter cases, Unicode forms, invisible characters,
 * final dots and spaces of a name (PA-04). What folds alike need not be the same file; what is the same folds alike.
 */
export function foldPath(path: string): string {
  // Upper case first: "ſ", "ß" and "ﬁ" are then what they are taken for.
  const folded = path
    .normalize('NFC')
    .toUpperCase()
    .toLowerCase()
    .replace(/\p{Cf}/gu, '')
    .normalize('NFC')
  return /[. ](?:\/|$)/.test(folded) ? folded.split('/').map(withoutEnd).join('/') : folded
}

function withoutEnd(name: string): string {
  return name === '.' || name === '..' ? name : name.replace(/[. ]+$/, '')
}
