import { expect, it } from 'vitest'
import { foldPath } from '../../src/lib/spelling.js'
import { plainWindowsPath } from '../../src/lib/windows-path.js'

const pathOf = (path: string) => {
  const plain = plainWindowsPath(path)
  return 'path' in plain ? plain.path : undefined
}

it('PA-04 drive letters, slashes, dots, final dots and spaces and the forms of \\\\?\\ are one spelling', () => {
  const spellings = [
    'C:\\ws\\dir\\a.txt',
    'c:/ws/dir/a.txt',
    'C:\\ws\\\\dir\\.\\a.txt',
    'C:\\ws\\dir\\x\\..\\a.txt',
    'C:\\..\\ws\\dir\\a.txt',
    'C:\\ws\\dir.\\a.txt.. ',
    'C:\\ws\\dir \\a.txt',
    '\\\\?\\C:\\ws\\dir\\a.txt',
    '//?/c:/ws/dir/a.txt',
    '\\\\.\\C:\\ws\\dir\\a.txt',
  ]
  expect([...new Set(spellings.map(pathOf))]).toEqual(['C:\\ws\\dir\\a.txt'])
  expect(['C:\\', 'c:/', '\\\\?\\C:\\', '\\\\?\\c:', 'C:\\a\\..'].map(pathOf)).toEqual(Array(5).fill('C:\\'))
  expect(['a/b', '.\\a\\b.', 'a\\.\\b '].map(pathOf)).toEqual(Array(3).fill('a\\b'))
  expect(['.', './', '..\\a', 'a\\..\\b'].map(pathOf)).toEqual(['.', '.', '..\\a', 'a\\..\\b'])
})

it('PA-04 a share has one spelling too, which .. does not leave', () => {
  const spellings = [
    '\\\\server\\share\\a',
    '//server/share/a',
    '\\\\?\\UNC\\server\\share\\a',
    '\\\\.\\unc\\server\\share\\a',
    '\\\\server\\share\\..\\..\\a',
  ]
  expect([...new Set(spellings.map(pathOf))]).toEqual(['\\\\server\\share\\a'])
  expect(pathOf('\\\\server\\share')).toBe('\\\\server\\share\\')
})

it('PA-04 what would be another file than it seems to be is refused, and it says why', () => {
  const refused: [string, RegExp][] = [
    ['C:a.txt', /current folder of a drive/],
    ['C:', /current folder of a drive/],
    ['\\ws\\a', /current drive/],
    ['/ws/a', /current drive/],
    ['\\\\server', /no share/],
    ['\\\\.\\PhysicalDrive0', /device/],
    ['\\\\?\\Volume{1}\\a', /device/],
    ['\\\\?\\GLOBALROOT\\Device\\x', /device/],
    ['\\\\?\\a', /device/],
    ['\\\\?', /device/],
    ['C:\\ws\\NUL', /device/],
    ['ws\\con.txt', /device/],
    ['ws\\Com1 .log', /device/],
    ['ws\\LPT\u00b9', /device/],
    ['aux .', /device/],
    ['CONIN$', /device/],
    ['a.txt:hidden', /stream/],
    ['.env::$DATA', /stream/],
    ['.git::$INDEX_ALLOCATION\\config', /stream/],
    ['a*', /no name on Windows/],
    ['a\u0001', /no name on Windows/],
    ['ws\\...\\a', /dots and spaces only/],
    ['\\\\?\\C:\\ws\\a.', /cannot reach/],
    ['\\\\?\\C:\\ws\\..\\a', /dots and spaces only/],
  ]
  for (const [path, why] of refused)
    expect(plainWindowsPath(path), path).toEqual({ problem: expect.stringMatching(why) })
  const harmless = ['console.txt', 'com10', 'nul-a', 'lpt', 'C:\\a.b.c', 'a b.txt', '.gitignore']
  expect(harmless.map(pathOf)).toEqual(harmless)
})

it('PA-04 what some file system takes for the same name folds alike, and other names do not', () => {
  const alike = [
    ['/w/Secret.TXT', '/w/secret.txt'],
    ['/w/\u00e9', '/w/e\u0301', '/w/\u00c9', '/w/E\u0301'],
    ['/w/stra\u00dfe', '/w/STRASSE'],
    ['/w/\u017fecret', '/w/secret'],
    ['/w/\u212aiki', '/w/kiki'],
    ['/w/.g\u200cit', '/w/.git', '/w/.git. .', '/w/.GIT '],
    ['/w/a./b', '/w/a/b'],
  ]
  for (const spellings of alike) expect(new Set(spellings.map(foldPath)).size, spellings.join()).toBe(1)
  expect(new Set(['/w/a', '/w/b', '/w/a.b', '/w/..', '/w/.', '/w', '/w/e'].map(foldPath)).size).toBe(7)
})
