use super::*;
use proptest::prelude::*;
use pushlab_wire::fields::FieldList;

type Fields<'a> = &'a [(&'a str, &'a str)];

/// A block of appendix C, the fields that it stands for, and the table behind it: the newest first, and its size.
struct Example {
    block: &'static str,
    fields: Fields<'static>,
    table: Fields<'static>,
    table_bytes: u32,
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits")).collect()
}

fn list(fields: Fields<'_>) -> FieldList {
    let mut list = FieldList::default();
    for (name, value) in fields {
        list.push(name.as_bytes(), value.as_bytes());
    }
    list
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> FieldList {
    let mut list = FieldList::default();
    assert_eq!(decoder.decode(block, usize::MAX, &mut list), Ok(Outcome { is_cut: false }));
    list
}

fn entries(table: &tables::DynamicTable) -> FieldList {
    let mut list = FieldList::default();
    for (name, value) in (62..).map_while(|index| table.field(index)) {
        list.push(name, value);
    }
    list
}

fn check(decoder: &mut Decoder, examples: &[Example]) {
    for example in examples {
        assert_eq!(decode(decoder, &bytes(example.block)), list(example.fields), "{}", example.block);
        assert_eq!(entries(&decoder.table), list(example.table), "{}", example.block);
        assert_eq!(decoder.table_bytes(), example.table_bytes, "{}", example.block);
    }
}

#[test]
fn the_representations_of_appendix_c_2_are_decoded() {
    let custom: Fields = &[("custom-key", "custom-header")];
    let examples = [
        Example {
            block: "400a637573746f6d2d6b65790d637573746f6d2d686561646572",
            fields: custom,
            table: custom,
            table_bytes: 55,
        },
        Example {
            block: "040c2f73616d706c652f70617468",
            fields: &[(":path", "/sample/path")],
            table: &[],
            table_bytes: 0,
        },
        Example {
            block: "100870617373776f726406736563726574",
            fields: &[("password", "secret")],
            table: &[],
            table_bytes: 0,
        },
        Example { block: "82", fields: &[(":method", "GET")], table: &[], table_bytes: 0 },
    ];
    for example in &examples {
        check(&mut Decoder::new(INITIAL_TABLE_BYTES), std::slice::from_ref(example));
    }
}

const AUTHORITY: (&str, &str) = (":authority", "www.example.com");
const NO_CACHE: (&str, &str) = ("cache-control", "no-cache");
const CUSTOM: (&str, &str) = ("custom-key", "custom-value");

/// The three requests of appendices C.3 and C.4.
fn requests(blocks: [&'static str; 3]) -> [Example; 3] {
    let fields: [Fields; 3] = [
        &[(":method", "GET"), (":scheme", "http"), (":path", "/"), AUTHORITY],
        &[(":method", "GET"), (":scheme", "http"), (":path", "/"), AUTHORITY, NO_CACHE],
        &[(":method", "GET"), (":scheme", "https"), (":path", "/index.html"), AUTHORITY, CUSTOM],
    ];
    let tables: [(Fields, u32); 3] =
        [(&[AUTHORITY], 57), (&[NO_CACHE, AUTHORITY], 110), (&[CUSTOM, NO_CACHE, AUTHORITY], 164)];
    let mut rows = fields.into_iter().zip(tables);
    blocks.map(|block| {
        let (fields, (table, table_bytes)) = rows.next().expect("three of each");
        Example { block, fields, table, table_bytes }
    })
}

#[test]
fn the_requests_of_appendix_c_3_are_decoded() {
    let blocks = [
        "828684410f7777772e6578616d706c652e636f6d",
        "828684be58086e6f2d6361636865",
        "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
    ];
    check(&mut Decoder::new(INITIAL_TABLE_BYTES), &requests(blocks));
}

#[test]
fn the_requests_of_appendix_c_4_are_decoded_and_encoded_to_the_byte() {
    let examples = requests([
        "828684418cf1e3c2e5f23a6ba0ab90f4ff",
        "828684be5886a8eb10649cbf",
        "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
    ]);
    check(&mut Decoder::new(INITIAL_TABLE_BYTES), &examples);
    let mut encoder = Encoder::new();
    for example in examples {
        let mut block = Vec::new();
        encoder.encode(list(example.fields).iter(), &mut block);
        assert_eq!(block, bytes(example.block));
        assert_eq!(entries(&encoder.table), list(example.table));
        assert_eq!(encoder.table_bytes(), example.table_bytes);
    }
}

const PRIVATE: (&str, &str) = ("cache-control", "private");
const DATE: (&str, &str) = ("date", "Mon, 21 Oct 2013 20:13:21 GMT");
const LATER: (&str, &str) = ("date", "Mon, 21 Oct 2013 20:13:22 GMT");
const LOCATION: (&str, &str) = ("location", "https://www.example.com");
const GZIP: (&str, &str) = ("content-encoding", "gzip");
const COOKIE: (&str, &str) = ("set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1");

/// The three responses of appendices C.5 and C.6, which evict.
fn responses(blocks: [&'static str; 3]) -> [Example; 3] {
    let fields: [Fields; 3] = [
        &[(":status", "302"), PRIVATE, DATE, LOCATION],
        &[(":status", "307"), PRIVATE, DATE, LOCATION],
        &[(":status", "200"), PRIVATE, LATER, LOCATION, GZIP, COOKIE],
    ];
    let tables: [(Fields, u32); 3] = [
        (&[LOCATION, DATE, PRIVATE, (":status", "302")], 222),
        (&[(":status", "307"), LOCATION, DATE, PRIVATE], 222),
        (&[COOKIE, GZIP, LATER], 215),
    ];
    let mut rows = fields.into_iter().zip(tables);
    blocks.map(|block| {
        let (fields, (table, table_bytes)) = rows.next().expect("three of each");
        Example { block, fields, table, table_bytes }
    })
}

#[test]
fn the_responses_of_appendix_c_5_are_decoded() {
    let blocks = [
        "4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e1768747470733a2f\
         2f7777772e6578616d706c652e636f6d",
        "4803333037c1c0bf",
        "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153444a4b4851\
         4b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31",
    ];
    check(&mut Decoder::new(256), &responses(blocks));
}

#[test]
fn the_responses_of_appendix_c_6_are_decoded() {
    let blocks = [
        "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
        "4883640effc1c0bf",
        "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af27\
         087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
    ];
    check(&mut Decoder::new(256), &responses(blocks));
}

#[test]
fn a_pair_is_small_and_holds_no_memory_before_its_first_field() {
    assert!(size_of::<Encoder>() <= 80 && size_of::<Decoder>() <= 80);
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(INITIAL_TABLE_BYTES));
    let mut block = Vec::new();
    encoder.encode(list(&[(":status", "200"), ("date", "now")]).iter(), &mut block);
    assert_eq!(decode(&mut decoder, &block).len(), 2);
    assert_eq!((encoder.table.kept_bytes(), decoder.table.kept_bytes()), (0, 0));
}

#[derive(Debug, Clone)]
enum Step {
    Limit(u32),
    Fields(Vec<(Vec<u8>, Vec<u8>)>),
}

fn step() -> impl Strategy<Value = Step> {
    let known = prop::sample::select(vec![":path", ":status", "accept", "cookie", "set-cookie", "a", "x-a", "x-b"]);
    let name = prop_oneof![
        4 => known.prop_map(|name| name.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ];
    let value = prop_oneof![
        4 => prop::sample::select(vec!["", "/", "200", "text/event-stream", "0123456789abcdefghijklmnopq"])
            .prop_map(|value| value.as_bytes().to_vec()),
        2 => prop::collection::vec(any::<u8>(), 0..300),
        1 => prop::collection::vec(Just(b'x'), 2900..4200),
    ];
    prop_oneof![
        1 => prop_oneof![0u32..5000, Just(0), Just(INITIAL_TABLE_BYTES)].prop_map(Step::Limit),
        3 => prop::collection::vec((name, value), 0..12).prop_map(Step::Fields),
    ]
}

proptest! {
    #[test]
    fn what_is_encoded_comes_back(steps in prop::collection::vec(step(), 1..20)) {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(INITIAL_TABLE_BYTES));
        for step in steps {
            let fields = match step {
                Step::Limit(bytes) => {
                    encoder.set_max_table_bytes(bytes);
                    decoder.set_max_table_bytes(bytes);
                    continue;
                }
                Step::Fields(fields) => fields,
            };
            let mut expected = FieldList::default();
            for (name, value) in &fields {
                expected.push(name, value);
            }
            let mut block = Vec::new();
            encoder.encode(expected.iter(), &mut block);
            prop_assert_eq!(decode(&mut decoder, &block), expected);
            prop_assert_eq!(entries(&decoder.table), entries(&encoder.table));
            prop_assert_eq!(decoder.table_bytes(), encoder.table_bytes());
            prop_assert_eq!(decoder.table.max_bytes(), encoder.table.max_bytes());
        }
    }

    #[test]
    fn any_bytes_keep_to_the_limits(
        blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..8),
        max_table_bytes in 0u32..200,
        max_list_bytes in 0usize..300,
    ) {
        let mut decoder = Decoder::new(max_table_bytes);
        for block in blocks {
            let mut list = FieldList::default();
            let outcome = decoder.decode(&block, max_list_bytes, &mut list);
            prop_assert!(list.size() <= max_list_bytes && decoder.table_bytes() <= max_table_bytes);
            if outcome.is_err() {
                break;
            }
        }
    }
}
