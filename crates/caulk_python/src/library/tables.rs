//! pandas, polars, pyarrow: tables and what makes one from rows.

use super::entry::{Entry, Gives, gives, noted};

pub(super) const TABLE: &[Entry] = &[
    noted("pandas.DataFrame", Gives::Table),
    noted("pandas.DataFrame.from_records", Gives::Table),
    noted("pandas.DataFrame.from_dict", Gives::Table),
    noted("pandas.json_normalize", Gives::Table),
    noted("pandas.concat", Gives::Table),
    gives("pandas.*", Gives::Table),
    gives("pandas.DataFrame.*", Gives::Table),
    noted("pandas.DataFrame.plot", Gives::Axes),
    noted("pandas.DataFrame.boxplot", Gives::Axes),
    gives("pandas.DataFrame.to_csv", Gives::None),
    gives("pandas.DataFrame.to_parquet", Gives::None),
    gives("pandas.DataFrame.to_dict", Gives::Dict),
    gives("pandas.DataFrame.to_numpy", Gives::Array),
    gives("pandas.DataFrame.tolist", Gives::List),
    gives("pandas.DataFrame.mean", Gives::Measured),
    noted("polars.DataFrame", Gives::Table),
    noted("polars.from_dicts", Gives::Table),
    noted("polars.concat", Gives::Table),
    gives("polars.*", Gives::Table),
    noted("pyarrow.Table.from_pylist", Gives::Table),
    gives("pyarrow.*", Gives::Table),
    gives("csv.*", Gives::Library),
];
