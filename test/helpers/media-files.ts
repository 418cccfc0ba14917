import { crc32, deflateSync } from 'node:zlib'

/** A PDF of these objects, numbered from 1; the first is its catalog. */
export function pdfOf(objects: readonly (string | Buffer)[], trailer = ''): Buffer {
  let body = Buffer.from('%PDF-1.4\n')
  const add = (...pieces: (string | Buffer)[]) => {
    body = Buffer.concat([body, ...pieces.map((piece) => (Buffer.isBuffer(piece) ? piece : Buffer.from(piece)))])
  }
  const offsets = objects.map((object, index) => {
    const at = body.length
    add(`${index + 1} 0 obj\n`, object, '\nendobj\n')
    return at
  })
  const xref = body.length
  const rows = offsets.map((at) => `${String(at).padStart(10, '0')} 00000 n \n`).join('')
  add(`xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${rows}`)
  add(`trailer\n<< /Size ${objects.length + 1} /Root 1 0 R ${trailer}>>\nstartxref\n${xref}\n%%EOF\n`)
  return body
}

/** A PDF of pages with one line each. */
export function pdf(lines: readonly string[], trailer = ''): Buffer {
  const kids = lines.map((_, index) => `${4 + index * 2} 0 R`).join(' ')
  return pdfOf(
    [
      '<< /Type /Catalog /Pages 2 0 R >>',
      `<< /Type /Pages /Kids [${kids}] /Count ${lines.length} >>`,
      '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
      ...lines.flatMap((line, index) => [
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents ${5 + index * 2} 0 R >>`,
        stream('', Buffer.from(`BT /F1 24 Tf 72 700 Td (${line}) Tj ET`)),
      ]),
    ],
    trailer,
  )
}

/** A PDF of one page with one image of that many pixels a side. @param filter the content's own, with its bytes. */
export function pdfWithImage(side: number, image?: { filter: string; bytes: Buffer }): Buffer {
  const { filter, bytes } = image ?? { filter: 'FlateDecode', bytes: deflateSync(Buffer.alloc(side * side * 3)) }
  return pdfOf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /XObject << /I 5 0 R >> >> /Contents 4 0 R >>',
    stream('', Buffer.from('q 600 0 0 600 0 0 cm /I Do Q')),
    stream(
      `/Type /XObject /Subtype /Image /Width ${side} /Height ${side} /BitsPerComponent 8 /ColorSpace /DeviceRGB /Filter /${filter}`,
      bytes,
    ),
  ])
}

function stream(entries: string, bytes: Buffer): Buffer {
  return Buffer.concat([
    Buffer.from(`<< ${entries} /Length ${bytes.length} >>\nstream\n`),
    bytes,
    Buffer.from('\nendstream'),
  ])
}

/** A valid PNG of black and white pixels that is small however many they are. */
export function bombPng(side: number): Buffer {
  const head = Buffer.alloc(13)
  head.writeUInt32BE(side, 0)
  head.writeUInt32BE(side, 4)
  head[8] = 1
  const rows = deflateSync(Buffer.alloc(side * (1 + Math.ceil(side / 8))))
  const signature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')
  return Buffer.concat([signature, chunk('IHDR', head), chunk('IDAT', rows), chunk('IEND', Buffer.alloc(0))])
}

function chunk(type: string, body: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type), body])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(body.length)
  sum.writeUInt32BE(crc32(named))
  return Buffer.concat([length, named, sum])
}

/** An SVG that takes minutes to draw. */
export const SLOW_SVG =
  '<svg xmlns="http://www.w3.org/2000/svg" width="9000" height="9000"><filter id="f" x="0" y="0" width="100%" height="100%">' +
  '<feTurbulence baseFrequency="0.9" numOctaves="9"/><feGaussianBlur stdDeviation="400"/>'.repeat(20) +
  '</filter><rect width="9000" height="9000" filter="url(#f)"/></svg>'

/** Two pixels; no decoder here knows the format. */
export function bmp(): Buffer {
  const bytes = Buffer.alloc(62)
  bytes.write('BM')
  bytes.writeUInt32LE(bytes.length, 2)
  bytes.writeUInt32LE(54, 10)
  bytes.writeUInt32LE(40, 14)
  bytes.writeInt32LE(2, 18)
  bytes.writeInt32LE(1, 22)
  bytes.writeUInt16LE(1, 26)
  bytes.writeUInt16LE(24, 28)
  return bytes
}
